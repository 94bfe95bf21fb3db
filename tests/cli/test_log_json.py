"""`btcpay --log-json`: what a command says on standard error is one JSON object a line."""

import json
import signal

from builders import until

EVERY = {"at", "level", "logger", "message"}


def lines(errors):
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


def test_a_check_that_fails_says_why_before_and_json_is_beside_it(till, btcpay):
    till.shop.invoice()
    till.sandbox.switches.explorer_up = False
    output, errors = btcpay.run("--log-json", "check", status=1)
    *reasons, last = lines(errors)
    assert output == "" and "127.0.0.1" in str(reasons)
    assert (last["message"], last["level"], last["chain_failed"]) == ("check", "error", True)
    assert "error" in {line["level"] for line in reasons}
    output, errors = btcpay.run("--log-json", "check", "--json", status=1)
    assert json.loads(output)["chain_failed"] is True
    assert "check" not in {line["message"] for line in lines(errors)}


def test_with_quiet_lines_come_only_when_something_is_wrong(till, btcpay):
    till.shop.invoice()
    assert btcpay.run("--log-json", "check", "--quiet") == ("", "")
    till.sandbox.switches.explorer_up = False
    output, errors = btcpay.run("--log-json", "check", "--quiet", status=1)
    assert output == "" and lines(errors)[-1]["message"] == "check"


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


def test_what_a_command_refuses_is_a_line_too(btcpay):
    for environ, message in (
        ({}, "there is no invoice"),
        ({"BTCPAY_DATABASE_URL": "sqlite:////nowhere/lost.db"}, "there is no database"),
    ):
        output, errors = btcpay.run("--log-json", "invoice", "show", "x", status=1, **environ)
        found = lines(errors)
        assert output == "" and message in str([line["message"] for line in found])
        assert found[-1]["level"] == "error"
