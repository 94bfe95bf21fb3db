"""`btcpay --log-json`: what a command says on standard error is one JSON object a line."""

import json
import signal
from typing import Any

import pytest
from builders import until

EVERY = {"at", "level", "logger", "message"}


def lines(errors: str) -> list[dict[str, Any]]:
    """Each must be an object that says when, how bad, who and what."""
    found = [json.loads(line) for line in errors.splitlines()]
    assert all(line.keys() >= EVERY for line in found)
    return found


def test_a_check_is_one_line_with_what_its_json_has(till, btcpay):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    output, errors = btcpay.run("--log-json", "check")
    (line,) = lines(errors)
    assert output == ""
    assert (line["message"], line["level"]) == ("check", "info")
    assert line["changed"] == {invoice["id"]: "paid"} and line["blocks_behind"] == 0
    assert line.keys() - EVERY == btcpay.json("check").keys()


def test_a_check_that_fails_says_why_before(till, btcpay):
    till.shop.invoice()
    till.sandbox.switches.explorer_up = False
    output, errors = btcpay.run("--log-json", "check", status=1)
    *reasons, last = lines(errors)
    assert output == "" and "127.0.0.1" in str(reasons)
    assert (last["message"], last["level"], last["chain_failed"]) == ("check", "error", True)
    assert "error" in {line["level"] for line in reasons}


def test_with_json_the_answer_is_on_standard_output_and_the_log_beside_it(till, btcpay):
    till.sandbox.switches.explorer_up = False
    till.shop.invoice()
    output, errors = btcpay.run("--log-json", "check", "--json", status=1)
    assert json.loads(output)["chain_failed"] is True
    assert "check" not in {line["message"] for line in lines(errors)}


@pytest.mark.parametrize("up", [True, False], ids=["all is well", "no explorer answers"])
def test_with_quiet_lines_come_only_when_something_is_wrong(up, till, btcpay):
    till.shop.invoice()
    till.sandbox.switches.explorer_up = up
    output, errors = btcpay.run("--log-json", "check", "--quiet", status=0 if up else 1)
    assert output == ""
    assert [line["message"] for line in lines(errors)][-1:] == ([] if up else ["check"])


def test_watching_it_says_what_has_changed(till, btcpay):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    process = btcpay.start("--log-json", "check", "--watch", "1")
    until(lambda: till.look(invoice)["status"] == "paid", "the invoice to be paid")
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and output == ""
    assert {invoice["id"]: "paid"} in [line.get("changed") for line in lines(errors)]


REFUSALS = {
    "an invoice that is not there": ("invoice show inv_x", {}, "there is no invoice"),
    "a database that is not there": (
        "check",
        {"BTCPAY_DATABASE_URL": "sqlite:////nowhere/lost.db"},
        "there is no database",
    ),
    "a setting that nobody reads": (
        "invoice show inv_x",
        {"BTCPAY_NETWRK": "regtest"},
        "did you mean BTCPAY_NETWORK?",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_a_command_refuses_is_a_line_too(case, btcpay):
    words, environ, told = REFUSALS[case]
    output, errors = btcpay.run("--log-json", *words.split(), status=1, **environ)
    found = lines(errors)
    assert output == "" and told in str([line["message"] for line in found])
    assert found[-1]["level"] == "error"
