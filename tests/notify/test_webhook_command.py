"""`blocktill webhook` as an operator gives it, and the check that delivers."""

import json
import re
import sys
import threading
import time

import pytest

from storage.queries import blocks
from tests.support.builders import until
from tests.support.fake_esplora import say, silent


def test_a_shop_is_told_that_it_was_paid(till, blocktill, receiver):
    added = blocktill.json("webhook", "add", "shop", receiver.url)
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.mine()
    blocktill.run("check")
    assert set(receiver.kinds) == {
        "invoice.created",
        "payment.received",
        "invoice.paid",
    }
    for message in receiver.messages:
        assert message.verify(added["secret"])["data"]["invoice"]["id"] == invoice["id"]
    (row,) = blocktill.json("webhook", "list")
    assert (row["merchant"], row["url"], row["pending"]) == ("shop", receiver.url, 0)
    rows = blocktill.json("webhook", "deliveries", added["id"])
    assert [row["number"] for row in rows] == [3, 2, 1]
    assert {(row["state"], row["status"]) for row in rows} == {("delivered", 204)}


def test_the_secret_is_shown_once_and_by_nothing_else(till, blocktill, receiver):
    printed, said = blocktill.run("webhook", "add", "shop", receiver.url)
    secret = printed.strip()
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret) and secret not in said
    assert "`blocktill run` sends events by itself" in said
    webhook_id = blocktill.json("webhook", "list")[0]["id"]
    receiver.instead = lambda _: say(b"no", 500)
    till.shop.link()
    assert blocktill.json("webhook", "rotate", webhook_id)["secret"] != secret
    words = (["check"], ["webhook", "list"], ["webhook", "list", "--json"], ["doctor"])
    more = (
        ["webhook", "deliveries", webhook_id, "--json"],
        ["webhook", "remove", webhook_id],
    )
    for command in (*words, *more):
        ended = blocktill.start(*command)
        assert secret not in "".join(ended.communicate(timeout=60))


def test_the_check_logs_no_part_of_a_url(till, blocktill):
    blocktill.run("webhook", "add", "shop", "http://127.0.0.1:9/x?token=hunter2")
    till.shop.link()
    printed, said = blocktill.run("check")
    assert (
        "hunter2" not in printed + said and "notifications: 0 delivered, 1 not" in said
    )


def test_a_test_sends_a_made_up_payment_and_says_what_was_answered(
    till, blocktill, receiver
):
    words = ("--kinds", "invoice.paid", "--kinds", "payment.received")
    added = blocktill.json("webhook", "add", "shop", receiver.url, *words)
    (listed,) = blocktill.json("webhook", "list")
    assert listed["kinds"] == ["invoice.paid", "payment.received"]
    for status, taken in ((204, True), (503, False)):
        receiver.instead = lambda _, code=status: say(b"", code)
        (row,) = blocktill.json("webhook", "test", added["id"], status=int(not taken))
        assert (row["kind"], row["status"], row["is_taken"]) == (
            "invoice.paid",
            status,
            taken,
        )
    assert all(message.verify(added["secret"]) for message in receiver.messages)


def test_an_event_is_sent_again_and_none_to_an_endpoint_that_was_removed(
    till, blocktill, receiver
):
    added = blocktill.json("webhook", "add", "shop", receiver.url)
    till.shop.link()
    blocktill.run("check")
    blocktill.run("webhook", "resend", added["id"], "--since", "0")
    blocktill.run("check")
    assert len(receiver.ids) == 2 and len(set(receiver.ids)) == 1
    _, said = blocktill.run("webhook", "resend", added["id"], "--failed", status=1)
    assert "nothing was given up" in said
    blocktill.run("webhook", "resend", added["id"], "--event", receiver.ids[0])
    blocktill.run("check")
    assert len(receiver.ids) == 3 and len(set(receiver.ids)) == 1
    _, said = blocktill.run(
        "webhook", "resend", added["id"], "--event", "evt", status=1
    )
    assert "no delivery of 'evt'" in said
    till.shop.link()
    blocktill.run("webhook", "remove", added["id"])
    blocktill.run("check")
    assert len(receiver.ids) == 3 and blocktill.json("webhook", "list") == []


REFUSALS = {
    "no such merchant": (["add", "nobody", "http://127.0.0.1:9/"], 1, "merchant"),
    "neither URL nor command": (["add", "shop"], 2, "--exec"),
    "both": (["add", "shop", "http://127.0.0.1:9/", "--exec", "true"], 2, "--exec"),
    "no URL": (["add", "shop", "shop.example/hooks"], 1, "https://"),
    "a kind that there is not": (["add", "shop", "http://a/", "--kinds", "invoice.lost"], 2,
        "lost"),
    "no such endpoint": (["deliveries", "whk_1"], 1, "whk_1"),
    "to rotate none": (["rotate", "whk_1"], 1, "whk_1"),
    "to send nothing again": (["resend", "whk_1"], 2, "--failed"),
    "to send two things again": (["resend", "whk_1", "--failed", "--event", "e"], 2, "--event"),
    "to remove none": (["remove", "whk_1"], 1, "whk_1"),
}  # fmt: skip


def test_what_cannot_be_is_refused_with_what_would_be(blocktill):
    for refusal, (words, status, message) in REFUSALS.items():
        assert message in blocktill.run("webhook", *words, status=status)[1], refusal
    assert blocktill.json("webhook", "list") == []


# Writes what it was given into the file that it is named.
PROGRAM = """
import json, os, sys
given = {"body": json.load(sys.stdin), "environ": dict(os.environ)}
with open(sys.argv[1], "a") as file:
    file.write(json.dumps(given) + "\\n")
sys.exit(int(sys.argv[2]))
"""


@pytest.mark.parametrize(("status", "state"), [(0, "delivered"), (3, "waiting")])
def test_a_command_gets_the_body_and_nothing_of_our_settings(
    till, blocktill, tmp_path, status, state
):
    file = tmp_path / "told"
    (tmp_path / "program.py").write_text(PROGRAM)
    command = f"{sys.executable} {tmp_path}/program.py {file} {status}"
    added = blocktill.json("webhook", "add", "shop", "--exec", command)
    assert added["secret"] is None
    link = till.shop.link()
    blocktill.run("check")
    (given,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert given["body"]["data"]["payment_link"] == link
    assert (
        given["environ"]["EVENT_TYPE"]
        == given["body"]["type"]
        == "payment_link.created"
    )
    assert not [name for name in given["environ"] if name.startswith("BLOCKTILL")]
    (row,) = blocktill.json("webhook", "deliveries", added["id"])
    assert (row["state"], row["status"]) == (state, status)
    assert row["event_id"] == given["environ"]["EVENT_ID"]


@pytest.mark.parametrize("command", ["/nowhere/program -x", "sh -c 'x", " "])
def test_a_command_that_cannot_be_started_is_a_failure_that_says_so(
    till, blocktill, command
):
    added = blocktill.json("webhook", "add", "shop", "--exec", command)
    (row,) = blocktill.json("webhook", "test", added["id"], status=1)
    assert (row["is_taken"], row["status"]) == (False, None)
    assert row["answer"].startswith("could not be started: ")


def test_a_shell_runs_only_when_it_is_named(till, blocktill, tmp_path):
    for command in (f"echo told > {tmp_path}/b", f"sh -c 'cat > {tmp_path}/c'"):
        blocktill.run("webhook", "add", "shop", "--exec", command)
    till.shop.link()
    blocktill.run("check")
    assert not (tmp_path / "b").exists() and (tmp_path / "c").read_text().startswith(
        '{"type"'
    )


def test_no_check_waits_for_a_receiver(till, blocktill, receiver):
    """It is held for as long as the test likes; meanwhile check follows check."""
    released = threading.Event()
    receiver.instead = lambda _: silent(released)
    blocktill.run("webhook", "add", "shop", receiver.url)
    till.shop.link()

    db = till.shop.service.db

    def check_finds_block():
        below = blocks.tip_height(db)
        till.mine()
        until(lambda: blocks.tip_height(db) != below, "a check to find a block")

    watching = blocktill.start("check", "--watch", "1")
    try:
        until(lambda: receiver.messages, "the attempt")
        began_s = time.monotonic()
        for _ in range(3):
            check_finds_block()
        assert len(receiver.messages) == 1 or time.monotonic() - began_s > 8
        # Another check beside it is not held up either, and tells nobody twice.
        blocktill.run("check")
        assert len(receiver.messages) == 1 or time.monotonic() - began_s > 8
    finally:
        released.set()
        watching.terminate()
        watching.communicate(timeout=30)
