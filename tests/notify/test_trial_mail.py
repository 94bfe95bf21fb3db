"""A test mail to real servers: each fault by its name, the server's words, and an end in time."""

import socket
import threading
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import pytest

from btcpay.notify.mail.message import message_of
from btcpay.notify.mail.replies import Times
from btcpay.notify.mail.server import MailAccount
from btcpay.notify.mail.shop_texts import trial
from btcpay.notify.mail.trial import MAX_WORDS, TIMES, Fault, send_test
from btcpay.settings.mail_settings import MailServer as Server
from btcpay.settings.mail_settings import Sender
from storage.queries.merchants import MailBrand
from tests.support.mail_server import PASSWORD, USER, MailServer
from tests.support.slow_mail import SlowMail

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while")
SENDER = Sender("Tea & Co", "tea@seller.de")
TO = "owner@seller.de"
AT = datetime(2031, 1, 1, tzinfo=UTC)
SHORT = Times(connect_s=5, answer_s=0.5, mail_s=20, goodbye_s=0.5)


def send(port, host="127.0.0.1", is_tls=False, user="", password="", times=TIMES):
    account = MailAccount(Server(host, port, is_tls, user, password), SENDER)
    message = message_of(
        trial("Tea & Co", "en"), MailBrand("Tea & Co"), SENDER, TO, "test.1", AT
    )
    return send_test(account, message, TO, times)


@contextmanager
def answering(first, *answers):
    """A server that says `first`, then one of the answers to each line."""

    def serve():
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as lines:
            connection.sendall(first)
            for answer in answers:
                if not lines.readline():
                    return
                connection.sendall(answer)
            with suppress(OSError):
                lines.read()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


@pytest.mark.parametrize("kind", ["plain", "starttls", "tls"])
def test_a_mail_arrives_in_each_kind_of_session(kind, tmp_path, monkeypatch):
    with MailServer(tmp_path, kind, login=True) as server:
        if kind != "plain":
            monkeypatch.setenv("SSL_CERT_FILE", str(server.ca))
        outcome = send(server.port, is_tls=kind == "tls", user=USER, password=PASSWORD)
    assert (outcome.fault, outcome.words) == (None, "250 OK")
    (mail,) = server.taken
    assert (mail.to, mail.user, mail.is_secret) == ([TO], USER, kind != "plain")


@pytest.mark.parametrize("kind", ["starttls", "tls"])
def test_a_mail_servers_certificate_that_nobody_vouches_for_is_named(kind, tmp_path):
    with MailServer(tmp_path, kind, login=True) as server:
        outcome = send(server.port, is_tls=kind == "tls", user=USER, password=PASSWORD)
    assert outcome == (Fault.CERTIFICATE, "") and server.taken == []


def test_tls_to_a_server_that_speaks_without_is_named(tmp_path):
    with MailServer(tmp_path) as server:
        assert send(server.port, is_tls=True) == (Fault.TLS, "")


def test_no_password_is_sent_in_the_clear_to_another_machine():
    """This machine by an address that does not say so."""
    with answering(b"220 hello\r\n", b"250-us\r\n250 AUTH PLAIN\r\n") as port:
        outcome = send(port, host="0.0.0.0", user=USER, password=PASSWORD)
    assert outcome == (Fault.NO_TLS, "")


def test_a_wrong_password_has_the_servers_words(tmp_path):
    with MailServer(tmp_path, login=True) as server:
        outcome = send(server.port, user=USER, password="not that")
    assert outcome.fault == Fault.LOGIN and outcome.words.startswith("535 5.7.8")


def test_a_server_without_logins_takes_no_user():
    with answering(b"220 hello\r\n", b"250 us\r\n") as port:
        assert send(port, user=USER, password=PASSWORD) == (Fault.LOGIN, "")


REFUSALS = {
    "MAIL": "553 5.7.1 not yours",
    "RCPT": "550 5.1.1 unknown",
    "DATA": "554 5.7.1 spam",
}


@pytest.mark.parametrize("command", REFUSALS)
def test_a_refusal_has_the_servers_words(command, tmp_path):
    with MailServer(tmp_path) as server:
        server.answers[command] = REFUSALS[command]
        assert send(server.port) == (Fault.REFUSED, REFUSALS[command])


GREETINGS = {
    "a server that is closed": (b"554 5.3.2 no mail here\r\n", Fault.REFUSED,
        "554 5.3.2 no mail here"),
    "another service": (b"SSH-2.0-OpenSSH_9.2 secret\r\n", Fault.UNREACHABLE, ""),
    "a web server": (b"HTTP/1.1 400 Bad Request\r\nX: secret\r\n\r\n", Fault.UNREACHABLE, ""),
    "a number that is no reply": (b"999 secret\r\n", Fault.UNREACHABLE, ""),
    "marks that nobody sees": ("421 \u202egnp\x1b[31m\r\n".encode(), Fault.REFUSED,
        "421 gnp [31m"),
    "a long story": (b"421 " + b"x" * 700 + b"\r\n", Fault.REFUSED,
        "421 " + "x" * (MAX_WORDS - 4)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("greeting", "fault", "words"), GREETINGS.values(), ids=GREETINGS
)
def test_only_the_words_of_a_mail_server_are_shown(greeting, fault, words):
    with answering(greeting) as port:
        assert send(port) == (fault, words)


def test_nobody_there_and_no_such_name_are_told():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert send(port).fault == Fault.UNREACHABLE
    assert send(25, host=f"{'a' * 64}.invalid").fault == Fault.UNREACHABLE


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
def test_a_server_that_says_nothing_has_its_time_and_no_more(is_tls):
    began_s = time.monotonic()
    with answering(b"") as port:
        assert send(port, is_tls=is_tls, times=SHORT) == (Fault.SLOW, "")
    assert time.monotonic() - began_s < 10  # the usual time would be twenty


def test_a_server_that_dribbles_has_the_time_of_the_mail_and_no_more():
    ended = threading.Event()

    def dribble():
        while not ended.wait(0.1):
            pass

    with SlowMail() as slow:
        threading.Thread(target=slow.serve_forever, daemon=True).start()
        slow.greet = dribble
        port = slow.server_address[1]
        times = Times(connect_s=5, answer_s=60, mail_s=0.5, goodbye_s=0.5)
        assert send(port, times=times) == (Fault.SLOW, "")
        ended.set()
        slow.shutdown()


def test_no_answer_to_the_whole_mail_leaves_a_doubt():
    with SlowMail() as slow:
        threading.Thread(target=slow.serve_forever, daemon=True).start()
        slow.judge = lambda: False
        assert send(slow.server_address[1]) == (Fault.IN_DOUBT, "")
        assert len(slow.taken) == 1
        slow.shutdown()


def test_a_request_waits_for_a_test_no_longer_than_a_stopping_service_for_it():
    assert TIMES.mail_s <= 25 and TIMES.connect_s + TIMES.answer_s <= 25
