"""`blocktill listen` shows a life from created to paid, and forwards it signed."""

import json
import re
import signal
from datetime import UTC, datetime

import pytest

from btcpay.cli.listen import readable_line
from btcpay.notify.events import sample_event
from schemas.resources import Resources
from tests.support.builders import until
from tests.support.fake_esplora import Terminal, say
from tests.support.receiver import Receiver
from tests.support.shop_events import events


class Listening:
    """The command while it runs: what it printed so far, and said."""

    def __init__(self, till, *words, **environ):
        self._process = Terminal(till).start("listen", *words, **environ)
        self.said = ""
        while "listening" not in self.said:
            self.said += self._process.stderr.readline()

    def lines(self, count):
        """The next so many lines."""
        return [json.loads(self._process.stdout.readline()) for _ in range(count)]

    def end(self):
        self._process.send_signal(signal.SIGINT)
        printed = self._process.communicate(timeout=30)
        assert self._process.returncode == 0
        return printed


def pay(till):
    invoice = till.shop.invoice()
    till.pay(invoice)
    till.look_for(invoice)
    till.mine_and_check()
    return invoice


LIFE = ["invoice.created", "invoice.payment_seen", "payment.received", "invoice.paid"]


def test_a_life_from_created_to_paid_is_shown_as_it_is_lived(till):
    till.shop.link()
    listening = Listening(till)
    invoice = pay(till)
    lines = listening.lines(4)
    assert [line["type"] for line in lines] == LIFE
    assert [line["number"] for line in lines] == [2, 3, 4, 5]
    assert [line["data"]["invoice"]["status"] for line in lines] == [
        "open",
        "open",
        "paid",
        "paid",
    ]
    assert {line["data"]["invoice"]["id"] for line in lines} == {invoice["id"]}
    assert lines == [json.loads(event.line) for event in events(till, since=1)]
    assert listening.end()[0] == ""


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_lines_are_utf_8_whatever_the_terminal_has(till, encoding):
    description = "\u73c8\u7432 \u20ac5 \U0001f600"
    listening = Listening(till, PYTHONIOENCODING=encoding)
    till.shop.invoice(description=description)
    (line,) = listening.lines(1)
    assert line["data"]["invoice"]["description"] == description
    listening.end()


def test_listen_can_begin_earlier_and_leave_out_other_merchants(till):
    till.shop.add_merchant("other")
    till.shop.link()
    pay(till)
    listening = Listening(till, "--since", "2", "--merchant", "shop")
    assert [line["type"] for line in listening.lines(3)] == LIFE[1:]
    listening.end()
    nobody = Listening(till, "--since", "0", "--merchant", "other")
    assert nobody.end()[0] == ""


def test_what_is_forwarded_is_signed_with_the_secret_that_was_printed(till):
    with Receiver() as receiver:
        listening = Listening(till, "--forward-to", receiver.url)
        secret = re.search(r"whsec_\S+", listening.said)[0]
        pay(till)
        lines = listening.lines(4)
        until(lambda: len(receiver.messages) == 4, "the last one")
        assert receiver.kinds == LIFE
        assert receiver.ids == [line["id"] for line in lines]
        assert all(message.verify(secret) for message in receiver.messages)
        receiver.instead = lambda _: say(b"", 500)
        till.shop.link()
        (line,) = listening.lines(1)
        until(lambda: len(receiver.messages) == 5, "the one that is refused")
        _, said = listening.end()
        assert f"{line['id']} was not taken: answered 500" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--merchant", "nobody"], "nobody"),
        (["--forward-to", "file:///etc/passwd"], "https://"),
    ],
)
def test_listen_refuses_what_cannot_be(till, words, message):
    assert message in Terminal(till).run("listen", *words, status=1)[1]


def test_on_a_terminal_a_line_says_what_happened_to_what():
    event = sample_event(Resources(""), 1, datetime(2026, 1, 1, tzinfo=UTC))
    event.data["reference"] = "10442"
    event.data["attention"] = "\x9b2J\u202e"  # which a terminal would obey
    words = readable_line(event).split()
    assert words[:3] == ["0", "2026-01-01T00:00:00.000Z", "invoice.paid"]
    sats = str(event.data["invoice"]["amount_sats"])
    assert words[4:] == ["10442", "paid", "\\x9b2J\\u202e", sats, "sats"]
