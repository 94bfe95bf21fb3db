"""First steps."""
import pytest
from fake_esplora import Till, open_till


@pytest.fixture
def till(tmp_path, ticker, clock):
    with open_till(tmp_path, ticker, clock) as opened:
        yield opened


def test_a_payment_is_seen_and_settled(till: Till):
    invoice = till.shop.invoice(25)
    till.pay(invoice)
    r = till.check()
    print(r)
    till.mine()
    r = till.check()
    print(r)
    assert till.look(invoice)["status"] == "paid"
    assert till.kinds(invoice) == []
