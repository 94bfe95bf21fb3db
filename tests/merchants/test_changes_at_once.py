"""Two pages of the settings are saved at the same moment: each keeps what the other one set."""

from threading import Thread

import pytest

from btcpay.merchants.merchants import set_brand, set_mail
from storage.queries import merchants, receivers
from tests.support.builders import until
from tests.support.databases import waits_for_lock

pytestmark = pytest.mark.both_databases


def set_beside(shop, set, change):
    """Begins the change in a thread, and returns once it waits, or has ended."""
    thread = Thread(target=set, args=(shop.service.db, shop.merchant_id, *change))
    thread.start()
    url = shop.environ["BLOCKTILL_DATABASE_URL"]
    until(lambda: waits_for_lock(url) or not thread.is_alive(), "the change to wait")
    return thread


def test_of_two_changes_of_a_brand_at_once_none_is_lost(shop):
    db = shop.service.db
    with db.write():
        set_brand(db, shop.merchant_id, {"name": "Harbour"})
        other = set_beside(shop, set_brand, [{"tax_percent": "19"}])
    other.join()
    row = db.get(merchants.BRAND, merchant_id=shop.merchant_id)
    assert (row.name, row.tax_percent) == ("Harbour", "19")


def test_of_two_changes_of_the_mail_settings_at_once_none_is_lost(shop):
    db = shop.service.db
    with db.write():
        set_mail(db, shop.merchant_id, {"address": "a@shop.example"}, shop.clock())
        change = [{"language": "de"}, shop.clock()]
        other = set_beside(shop, set_mail, change)
    other.join()
    row = db.get(receivers.MAIL_OF, merchant_id=shop.merchant_id)
    assert (row.address, row.language) == ("a@shop.example", "de")
