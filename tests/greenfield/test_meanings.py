"""What Greenfield calls each state of an invoice: the table of docs/merchants/shop-plugins.md."""

from decimal import Decimal

import pytest

from btcpay.greenfield.asked import OURS
from btcpay.greenfield.orders import meaning_of
from btcpay.settlement.values import Rules
from storage.models import Invoice
from storage.statement import blank

NOTHING = {"received_sats": 0, "unconfirmed_sats": 0, "beside_sats": 0, "settled_reason": None}


# fmt: off
@pytest.mark.parametrize(("status", "came", "called"), [
    ("open", {}, ("New", "None")),
    ("open", {"received_sats": 1, "unconfirmed_sats": 1}, ("New", "PaidPartial")),
    ("open", {"received_sats": 949}, ("New", "PaidPartial")),
    ("open", {"received_sats": 950, "unconfirmed_sats": 950}, ("Processing", "None")),
    ("open", {"received_sats": 1000, "unconfirmed_sats": 400}, ("Processing", "None")),
    ("open", {"received_sats": 1001, "unconfirmed_sats": 1}, ("Processing", "PaidOver")),
    ("paid", {"received_sats": 1000}, ("Settled", "None")),
    ("paid", {"received_sats": 950}, ("Settled", "None")),
    ("paid", {"received_sats": 1001}, ("Settled", "PaidOver")),
    ("paid", {"received_sats": 1000, "beside_sats": 7}, ("Settled", "PaidOver")),
    ("paid", {"received_sats": 400, "settled_reason": "a friend"}, ("Settled", "Marked")),
    ("expired", {}, ("Expired", "None")),
    ("expired", {"received_sats": 400, "beside_sats": 400}, ("Expired", "PaidPartial")),
    ("expired", {"received_sats": 400, "unconfirmed_sats": 400}, ("Expired", "PaidPartial")),
    ("expired", {"beside_sats": 1}, ("Expired", "PaidPartial")),
    ("expired", {"received_sats": 400, "beside_sats": 949}, ("Expired", "PaidPartial")),
    ("expired", {"received_sats": 400, "beside_sats": 950}, ("Expired", "PaidLate")),
    ("canceled", {"beside_sats": 5}, ("Invalid", "Marked")),
])
# fmt: on
def test_every_state_has_its_names(status, came, called):
    row = blank(Invoice, **NOTHING | {"status": status, "amount_sats": 1000} | came)
    assert meaning_of(row, Rules(1, Decimal(5))) == called
    assert OURS[called[0]] == status
