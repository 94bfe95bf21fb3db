"""A real mail server on 127.0.0.1, by aiosmtpd, which takes, refuses or hangs as told."""

import ssl
import time
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller

from tests.support.ports import free_port
from tests.support.programs import certificate

USER = "shop@example.com"
PASSWORD = "hunter2 :/@"


@dataclass(frozen=True)
class Taken:
    """A mail that the server has taken: its envelope, and what it says."""

    sender: str
    to: list[str]
    raw: bytes
    is_secret: bool
    user: str | None

    @property
    def message(self) -> EmailMessage:
        return message_from_bytes(self.raw, policy=policy.default)

    @property
    def subject(self) -> str:
        return self.message["Subject"]

    @property
    def text(self) -> str:
        return self.message.get_body(("plain",)).get_content()

    @property
    def html(self) -> str:
        return self.message.get_body(("html",)).get_content()


class MailServer:
    """Use it as a context manager. `taken`: the mails; `answers`: instead of taking, by command.

    `kind`: plain, starttls or tls; with `login` nobody else may send.
    """

    def __init__(self, folder: Path, kind: str = "plain", login: bool = False) -> None:
        self.taken: list[Taken] = []
        self.answers: dict[str, str] = {}
        self.sessions = 0
        self.pause_s = 0.0
        self._kind = kind
        self._login = login
        self.ca = folder / "fullchain.pem"
        context = None
        if kind != "plain":
            certificate(folder)
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self.ca, folder / "privkey.pem")
        more: dict[str, Any] = {"ssl_context": context} if kind == "tls" else {}
        if kind == "starttls":
            more |= {"tls_context": context, "require_starttls": login}
        if login:
            pair = (USER.encode(), PASSWORD.encode())
            more |= {"auth_callback": lambda _mechanism, *given: given == pair}
            more |= {"auth_required": True, "auth_require_tls": kind == "starttls"}
        self.port = free_port()
        self._controller = Controller(
            self, "127.0.0.1", self.port, ready_timeout=30, **more
        )

    @property
    def url(self) -> str:
        scheme = "smtps" if self._kind == "tls" else "smtp"
        user = "shop%40example.com:hunter2%20%3A%2F%40@" if self._login else ""
        return f"{scheme}://{user}127.0.0.1:{self.port}"

    @property
    def subjects(self) -> list[str]:
        return [mail.subject for mail in self.taken]

    async def handle_EHLO(
        self,
        _server: Any,
        session: Any,
        _envelope: Any,
        hostname: str,
        responses: list[str],
    ) -> list[str]:
        self.sessions += 1
        session.host_name = hostname
        return responses

    async def handle_MAIL(
        self, _server: Any, _session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return self.answers.get("MAIL", "250 OK")

    async def handle_RCPT(
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        answer = self.answers.get("RCPT") or self.answers.get(
            f"RCPT {address}", "250 OK"
        )
        if answer == "250 OK":
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if "DATA" in self.answers:
            return self.answers["DATA"]
        time.sleep(self.pause_s)
        user = getattr(session, "auth_data", None)
        by = user.login.decode() if user else None
        is_secret = server.transport.get_extra_info("sslcontext") is not None
        sent = (envelope.mail_from, envelope.rcpt_tos, envelope.content)
        self.taken.append(Taken(*sent, is_secret, by))
        return "250 OK"

    def __enter__(self) -> "MailServer":
        self._controller.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._controller.stop()
