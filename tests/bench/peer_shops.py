"""How this service and two public ones are started, and how each is asked for the same things.

A peer's checkout is copied, so that it stays as it is; nothing of theirs is in this repository.
"""

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fill import ACCOUNT, KEYS, secret
from server import ROOT

Environ = dict[str, str]
# Sends method, path, headers and body; returns the JSON answer.
Ask = Callable[..., Any]
SATS, USD = 41_667, 25
THREADS = ["--worker-class", "gthread", "--threads", "8"]


def copied(checkout: Path, folder: Path) -> Path:
    """A copy to run in, without its history and its virtual environment."""
    copy = folder / checkout.name
    return Path(shutil.copytree(checkout, copy, ignore=shutil.ignore_patterns(".git", ".venv")))


class Ours:
    """This service, with a shop that `fill` made."""

    name = "btcpay"

    def __init__(self, python: str, database_url: str, upstream: str) -> None:
        self.python, self.module, self.folder = python, ["gunicorn", "wsgi:app"], ROOT
        self.environ = {
            "BTCPAY_DATABASE_URL": database_url,
            "BTCPAY_PRICE_SOURCES": f"{upstream}/v1/prices#/USD",
            "BTCPAY_PRICE_QUORUM": "1",
        }
        self._keys = {
            scope: (secret(scope, n) for n in itertools.cycle(range(KEYS)) for _ in range(times))
            for scope, times in (("read", 100), ("write", 25))
        }

    def bind(self, port: int) -> Environ:
        return {"BTCPAY_BASE_URL": f"http://127.0.0.1:{port}"}

    def create(self, ask: Ask) -> str:
        body = {"amount_usd": USD, "description": "Tea", "expires_in_hours": 1}
        return ask("POST", "/api/v1/invoices", self._headers("write"), body)["id"]

    def get(self, ask: Ask, id: str) -> None:
        assert ask("GET", f"/api/v1/invoices/{id}", self._headers("read"))["status"] == "open"

    def _headers(self, scope: str) -> Environ:
        return {"Authorization": f"Bearer {next(self._keys[scope])}"}


class SatSale:
    """Its xpub mode, which asks an explorer; as its README starts it, with threads."""

    name = "SatSale"

    def __init__(self, checkout: Path, folder: Path, upstream: str) -> None:
        self.folder = copied(checkout, folder)
        # A second for an invoice: of one that has expired it asks nobody. Of one that is open it
        # asks the explorer and then sleeps for a second.
        (self.folder / "config.toml").write_text(
            f'payment_methods = ["xpub"]\n[xpub]\nxpub = "{ACCOUNT}"\nbip = "BIP84"\n'
            f'api_url = "{upstream}"\n[satsale]\npayment_timeout = 1\nloglevel = "INFO"\n'
            'supported_currencies = ["BTC"]\nbase_currency = "sats"\n'
        )
        self.python = str(checkout / ".venv/bin/python")
        self.module = ["gunicorn", "-w", "1", *THREADS, "satsale:app"]
        self.environ: Environ = {}

    def bind(self, port: int) -> Environ:
        return {"GUNICORN_CMD_ARGS": f"--bind 127.0.0.1:{port}"}

    def create(self, ask: Ask) -> str:
        path = f"/api/createpayment?amount={SATS}&currency=sats"
        return ask("GET", path)["invoice"]["uuid"]

    def get(self, ask: Ask, id: str) -> None:
        assert "status" in ask("GET", f"/api/checkpayment?uuid={id}")


class BtPay:
    """btpay-org's, as its deployment guide starts it; its limits are for another measurement."""

    name = "btpay"

    def __init__(self, checkout: Path, folder: Path, upstream: str) -> None:
        self.folder = copied(checkout, folder)
        (self.folder / "config.py").write_text(
            "from btpay.dictobj import DictObj\n"
            "RATE_LIMIT_API = DictObj(max_attempts=10**9, window_seconds=60)\n"
            f"EXCHANGE_RATE_SOURCES = ['mempool']\nMEMPOOL_API_URL = '{upstream}'\n"
        )
        self.python = str(checkout / ".venv/bin/python")
        self.module = ["gunicorn", "-c", "deploy/gunicorn.conf.py", "--threads", "8", "wsgi:app"]
        self.environ = {"BTPAY_NUM_PROXIES": "1"} | {
            f"BTPAY_{name}": "11" * size
            for name, size in (
                *(("SECRET_KEY", 32), ("JWT_ADMIN", 32), ("JWT_LOGIN", 32), ("JWT_API", 32)),
                *(("JWT_INVITE", 32), ("REFNUM_KEY", 32), ("REFNUM_NONCE", 24)),
            )
        }
        self._prepare(self.python)
        self._clients = self._addresses()

    def _prepare(self, python: str) -> None:
        """A user, a wallet and a key: what its guide does on the command line and on a page."""
        flask = [python, "-m", "flask", "--app", "app"]
        user = ["--email", "bench@example.com", "--password", "bench-Bench-2026!"]
        wallet = ["--org-id", "1", "--name", "w", "--type", "xpub", "--network", "testnet"]
        key = (
            "import hashlib; from app import create_app; app = create_app();"
            "from btpay.auth.models import ApiKey; from btpay.orm.persistence import save_to_disk;"
            "ApiKey(org_id=1, user_id=1, key_hash=hashlib.sha256(b'bench').hexdigest(),"
            " key_prefix='bench', label='bench').save(); save_to_disk(app.config['DATA_DIR'])"
        )
        for words in (
            [*flask, "user-create", *user, "--first-name", "b", "--last-name", "b"],
            [*flask, "wallet-create", *wallet, "--xpub", ACCOUNT],
            [python, "-c", key],
        ):
            environ = os.environ | self.environ | {"_BTPAY_GUNICORN": "1"}
            subprocess.run(words, cwd=self.folder, env=environ, check=True, capture_output=True)

    def bind(self, port: int) -> Environ:
        return {"BTPAY_BIND": f"127.0.0.1:{port}"}

    def create(self, ask: Ask) -> str:
        line = {"description": "Tea", "quantity": 1, "unit_price": USD}
        id = ask("POST", "/api/v1/invoices", self._headers(), {"lines": [line]})["invoice_number"]
        assert ask("POST", f"/api/v1/invoices/{id}/finalize", self._headers())["btc_amount"]
        return id

    def get(self, ask: Ask, id: str) -> None:
        path = f"/api/v1/invoices/{id}/status"
        assert ask("GET", path, self._headers())["status"] == "pending"

    def _headers(self) -> Environ:
        return {"Authorization": "Bearer bench", "X-Forwarded-For": next(self._clients)}

    @staticmethod
    def _addresses() -> Iterator[str]:
        """It serves each address a hundred times a minute."""
        numbers = (number for number in itertools.count() for _ in range(90))
        return (f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in numbers)
