"""The shop that is being set up, met by the program's own commands, run as its user."""

import json
import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from btcpay.setup.places import program
from btcpay.values.errors import CommandError

KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "REQUESTS_CA_BUNDLE")


@dataclass(frozen=True)
class Shop:
    """Settings, as the file of them will say, and the user whose files the database's are."""

    settings: Mapping[str, str]
    user: pwd.struct_passwd

    def run(self, words: Sequence[str], typed: str = "", shown: bool = False) -> str:
        """What the command answers; with `shown` to this program's own output instead.

        Raises CommandError with the command's last line when it fails.
        """
        ended = self._start(words, typed, shown)
        if ended.returncode:
            last = (ended.stderr.strip().splitlines() or [f"{words[0]} failed"])[-1]
            raise CommandError(last.removeprefix("btcpay: "))
        return ended.stdout or ""

    def ask(self, *words: str) -> Any:
        """What the command answers as JSON, however it ended. Raises CommandError without any."""
        ended = self._start([*words, "--json"], "", False)
        if not ended.stdout:
            raise CommandError(ended.stderr.strip())
        return json.loads(ended.stdout)

    def _start(
        self, words: Sequence[str], typed: str, shown: bool
    ) -> "subprocess.CompletedProcess[str]":
        is_other = self.user.pw_uid != os.geteuid()
        as_whom: dict[str, Any] = {"user": self.user.pw_uid, "group": self.user.pw_gid}
        environ = {name: os.environ[name] for name in KEPT if name in os.environ}
        try:
            return subprocess.run(
                [*program(), *words],
                input=typed,
                stdout=None if shown else subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environ | dict(self.settings),
                cwd="/",
                **(as_whom | {"extra_groups": []} if is_other else {}),
            )
        except PermissionError:
            raise CommandError(
                f"{self.user.pw_name} may not run {program()[0]}: install it outside of a home, by"
                " python3 -m venv /opt/btcpay && /opt/btcpay/bin/pip install blocktill"
            ) from None

    def merchants(self) -> list[str]:
        """The names of those that are there."""
        return [row["name"] for row in self.ask("merchant", "list")]

    def first_address(self, merchant: str) -> str:
        """Of a merchant that is there."""
        return str(self.ask("wallet", "export", merchant, "--addresses", "--count", "1")[0])

    def may_write(self, merchant: str) -> bool:
        """Whether the merchant has a key that makes invoices."""
        rows = self.ask("key", "list")
        return any(
            row["merchant"] == merchant and row["scope"] == "write" and not row["revoked_at"]
            for row in rows
        )
