"""Each reason for attention, and each kind of entry of a history, is wherever it must be named."""

import re
from types import SimpleNamespace

from btcpay.invoices.explain import ADVICE
from btcpay.notify.mail.mailto import mailto
from btcpay.settlement.attention import REASONS
from storage.models import Invoice
from storage.queries.events import MERELY_SEEN, PROMISED, Kind
from storage.statement import as_dict, blank
from tests.support.paths import PROJECT

PAGE = "https://pay.example.com/pay/inv_1"
# With these the customer is asked for nothing: the payment comes again by itself, or is accepted,
# or the customer need not know of it.
NOTHING_TO_ASK = {"reorganised", "dust_missing", "older_coin"}
# What can change whether an invoice needs attention. A refund counts when the chain has it.
OF_MONEY = {
    Kind.PAYMENT,
    Kind.REORGANISED,
    Kind.PAID,
    Kind.EXPIRED,
    Kind.CANCELED,
    Kind.DISMISSED,
    Kind.REFUND_SENT,
    Kind.REFUND_AGAIN,
    Kind.REFUND_UNDONE,
}


def test_the_database_accepts_every_reason_and_no_other(shop):
    """By the CHECK that the last step of the schema has left."""
    row = shop.sql("SELECT sql FROM sqlite_master WHERE name = 'attention'").fetchone()
    (accepted,) = re.findall(r"reason IN \(([^)]*)\)", row[0])
    assert set(re.findall(r"'(\w+)'", accepted)) == set(REASONS)


def test_the_command_advises_what_to_do_about_every_reason():
    assert set(ADVICE) == set(REASONS)


def test_the_document_explains_every_reason():
    page = (PROJECT / "docs/developers/settlement.md").read_text(encoding="utf-8")
    section = page.partition("\n## What needs a human\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.M)) == set(REASONS)


def test_a_mail_to_the_customer_asks_for_something_unless_there_is_nothing_to_ask():
    invoice = blank(Invoice, id="inv_1", amount="25.00", price="60000", currency="USD")

    def link(reason):
        row = SimpleNamespace(**as_dict(invoice), attention=reason)
        return mailto(row, PAGE, "My shop", "en")

    plain = link(None)
    asked = {reason for reason in REASONS if link(reason) != plain}
    assert asked == set(REASONS) - NOTHING_TO_ASK


def test_every_kind_of_entry_may_change_the_attention_or_is_said_not_to():
    kinds = [*MERELY_SEEN, *PROMISED, *OF_MONEY]
    assert sorted(kinds) == sorted(Kind)
