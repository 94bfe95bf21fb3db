"""Messages of the commands: about wrong use, and with --log-json in lines of JSON."""

import json

import click
import pytest

from btcpay.cli.main import cli
from tests.support.commands import commands
from tests.support.fake_esplora import Terminal
from tests.support.merchant_browser import ON
from tests.support.paths import PROJECT

VALUED = [
    (words, option.opts[0])
    for words, command in commands(cli)
    for option in command.params
    if isinstance(option, click.Option) and not option.is_flag
]


def test_an_option_with_an_empty_value_is_refused():
    """A script that names a variable which is not set says `--currency ""`."""
    assert len(VALUED) > 60
    asked = [(["--env-file", "", "check"], "--env-file")]
    for words, option in VALUED:
        asked += [
            ([*words.split(), option, ""], option),
            ([*words.split(), f"{option}="], option),
        ]
    for words, option in asked:
        with pytest.raises(
            click.UsageError, match=f"^{option} is followed by an empty"
        ):
            cli.main(words, standalone_mode=False)
    for words in (["--xpub=secret", ""], ["--xpub", "secret", "--script="]):
        with pytest.raises(click.UsageError) as refused:
            cli.main(["merchant", "add", "shop", *words], standalone_mode=False)
        assert "secret" not in str(refused.value)


UNKNOWN = "there is no merchant 'x'; `blocktill merchant list` lists them"
REFUSED = {
    "key issue x --scope read": UNKNOWN,
    "merchant brand x": UNKNOWN,
    "wallet gap x": UNKNOWN,
    "wallet export x": UNKNOWN,
    "merchant login x": UNKNOWN,
    "merchant sessions x": UNKNOWN,
    "merchant logout x": UNKNOWN,
    "export labels --merchant x": UNKNOWN,
    "invoice show inv_x": "there is no invoice 'inv_x'",
    "invoice create x --usd 1": UNKNOWN,
    "link create x": UNKNOWN,
    "link deactivate lnk_x": "there is no payment link 'lnk_x'",
    f"verify-proof {PROJECT}/README.md": (
        "this is not a file of `blocktill invoice show ID --proof`"
    ),
}


def test_a_refusal_says_what_to_use_instead(till):
    for words, message in REFUSED.items():
        said = Terminal(till).run(*words.split(), status=1, **ON)[1]
        assert said == f"blocktill: {message}\n", words


def test_a_database_url_is_refused_with_how_it_is_written(till):
    message = "sqlite:///path (four slashes for an absolute path) or postgresql://"
    for url in ("mysql://x/y", "postgres://u:p@h/x"):
        assert (
            message
            in Terminal(till).run("check", status=2, BLOCKTILL_DATABASE_URL=url)[1]
        )


EVERY = {"at", "level", "logger", "message"}


def lines(errors):
    """Each must be an object that says when, how bad, who and what."""
    found = [json.loads(line) for line in errors.splitlines()]
    assert all(line.keys() >= EVERY for line in found)
    return found


def test_a_check_is_one_line_with_what_its_json_has(till, blocktill):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    output, errors = blocktill.run("--log-json", "check")
    (line,) = lines(errors)
    assert output == ""
    assert (line["message"], line["level"]) == ("check", "info")
    assert line["changed"] == {invoice["id"]: "paid"} and line["blocks_behind"] == 0
    assert line.keys() - EVERY == blocktill.json("check").keys()


def test_a_check_that_fails_says_why_before_and_json_is_beside_it(till, blocktill):
    till.shop.invoice()
    till.sandbox.switches.explorer = "down"
    output, errors = blocktill.run("--log-json", "check", status=1)
    *reasons, last = lines(errors)
    assert output == "" and "127.0.0.1" in str(reasons)
    assert (last["message"], last["level"], last["chain_failed"]) == (
        "check",
        "error",
        True,
    )
    assert "error" in {line["level"] for line in reasons}
    output, errors = blocktill.run("--log-json", "check", "--json", status=1)
    assert json.loads(output)["chain_failed"] is True
    assert "check" not in {line["message"] for line in lines(errors)}


def test_what_a_command_refuses_is_a_line_too(blocktill):
    for environ, message in (
        ({}, "there is no invoice"),
        (
            {"BLOCKTILL_DATABASE_URL": "sqlite:////nowhere/lost.db"},
            "there is no database",
        ),
    ):
        output, errors = blocktill.run(
            "--log-json", "invoice", "show", "x", status=1, **environ
        )
        found = lines(errors)
        assert output == "" and message in str([line["message"] for line in found])
        assert found[-1]["level"] == "error"
