"""What commands say to whoever uses them wrongly: what to do instead."""

import subprocess
import sys
from pathlib import Path

import pytest
from builders import Shop, clean_environ
from fake_esplora import Terminal
from paths import PROJECT
from terminal import InTerminal


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("merchant list --env-file x", "--env-file stands before the command: btcpay --env-file F"),
        ("check --env-file=x", "--env-file stands before the command: btcpay --env-file FILE COMM"),
        ("check --log-json", "--log-json stands before the command: btcpay --log-json COMMAND"),
    ],
)
def test_the_option_before_the_command_is_shown_its_place(words, told, till):
    assert told in Terminal(till).run(*words.split(), status=2)[1]


@pytest.mark.parametrize(
    "words",
    ["key issue x --scope read", "merchant brand x", "wallet gap x", "export labels --merchant x"],
)
def test_an_unknown_merchant_is_told_where_the_names_are(words, till):
    said = Terminal(till).run(*words.split(), status=1)[1]
    assert said == "btcpay: there is no merchant 'x'; `btcpay merchant list` names them\n"


def test_a_file_that_is_no_proof_is_told_where_one_is_from(till):
    said = Terminal(till).run("verify-proof", str(PROJECT / "README.md"), status=1)[1]
    assert said == "btcpay: this is no file of `btcpay invoice show ID --proof`\n"


@pytest.mark.parametrize("url", ["mysql://x/y", "postgres://u:p@h/x"])
def test_a_database_url_is_told_how_it_is_written(url, till):
    told = "sqlite:///path (four slashes for an absolute path) or postgresql://"
    assert told in Terminal(till).run("check", status=2, BTCPAY_DATABASE_URL=url)[1]


def test_a_command_closes_its_database(shop: Shop, tmp_path: Path):
    """Python tells since 3.13 of a connection to SQLite that is left open."""
    words = [sys.executable, "-W", "default::ResourceWarning", "-m", "btcpay", "merchant", "list"]
    environ = clean_environ(**shop.environ)
    ended = subprocess.run(
        words, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_in_a_terminal_a_secret_is_said_to_be_shown_once(shop: Shop, tmp_path: Path):
    words = ["-m", "btcpay", "key", "issue", "shop", "--scope", "read"]
    environ = clean_environ(**shop.environ)
    terminal = InTerminal([sys.executable, *words], tmp_path, environ, 24, 200)
    assert terminal.process.wait(60) == 0
    assert terminal.end(0) == 0
    secret, told = terminal.screen.text.splitlines()[:2]
    assert secret.startswith("sk_test_") and told.startswith("shown this once")
