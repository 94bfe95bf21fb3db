"""Statements that are sent to a server together, so that an order waits for it less often."""

from contextlib import nullcontext

import pytest
from peewee import IntegrityError

from btcpay.notify import receivers
from storage.queries import merchants
from tests.support.statements import round_trips


def names(shop):
    return [row.name for row in shop.service.db.rows(merchants.ALL)]


def queue_merchant(db, name):
    """A statement that fails if there is a merchant of this name."""
    numbers = {
        "next_index": 0,
        "created_ms": 0,
        "used_before": 0,
        "look_ahead_ms": 0,
    }
    db.queue(
        merchants.ADD,
        name=name,
        descriptor=f"wpkh({name})",
        account_key=name,
        **numbers,
    )


def order(shop):
    """How often a client's order waits for the server."""
    shop.invoice()
    key = shop.issue("write")
    with round_trips(shop) as trips:
        assert shop.post("/invoices", {"amount_usd": 5}, key).status_code == 201
    return len(trips)


def test_an_order_waits_for_the_server_three_times(shop):
    """For the key; BEGIN, index and receivers; invoice, event and COMMIT."""
    assert order(shop) == 3


def test_an_order_with_a_webhook_waits_for_the_number_of_its_event_too(shop, clock):
    url = "https://example.com/hook"
    receivers.add(shop.service.db, shop.merchant_id, url, None, [], clock())
    assert order(shop) == 4


def test_a_transaction_in_which_nothing_is_run_sends_nothing(shop):
    shop.invoice()
    with round_trips(shop) as trips:
        with shop.service.db.write():
            pass
        with pytest.raises(ZeroDivisionError), shop.service.db.write():
            queue_merchant(shop.service.db, "dropped")
            raise ZeroDivisionError
    assert trips == []
    assert names(shop) == ["shop"]


def test_a_queued_statement_that_fails_commits_nothing(shop):
    db = shop.service.db
    with pytest.raises(IntegrityError), db.write():
        queue_merchant(db, "other")
        queue_merchant(db, "shop")
    assert names(shop) == ["shop"]


def test_an_error_of_a_queued_statement_is_raised_by_the_next(shop):
    db = shop.service.db
    with pytest.raises(IntegrityError), db.write():
        queue_merchant(db, "shop")
        names(shop)
        pytest.fail("it went on after an error")
    assert names(shop) == ["shop"]


def test_what_a_savepoint_has_queued_is_dropped_with_it_and_the_rest_is_stored(shop):
    db = shop.service.db
    with db.write():
        queue_merchant(db, "before")
        with pytest.raises(ZeroDivisionError), db.write():
            queue_merchant(db, "shop")
            raise ZeroDivisionError
        with pytest.raises(IntegrityError), db.write():
            queue_merchant(db, "shop")
        queue_merchant(db, "after")
    assert names(shop) == ["shop", "before", "after"]


def test_outside_of_a_transaction_a_statement_is_run_at_once(shop):
    queue_merchant(shop.service.db, "other")
    assert names(shop) == ["shop", "other"]


# A statement is prepared at its sixth execution on a connection.
@pytest.mark.parametrize("earlier", [4, 5, 6])
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_failure_spoils_no_later_statement_of_its_connection(shop, earlier, is_kept):
    """The server skips what follows a failure, also the preparing of a statement."""
    db = shop.service.db

    def add(name):
        with db.write():
            queue_merchant(db, name)
            names(shop)

    with db.borrow_connection() if is_kept else nullcontext():
        with pytest.raises(IntegrityError):
            add("shop")
        for number in range(earlier):
            add(f"before {number}")
        with pytest.raises(IntegrityError):
            add("shop")
        for number in range(8):
            add(f"after {number}")
    assert len(names(shop)) == 1 + earlier + 8
    with db.borrow_connection():
        assert db.connection.connection().prepare_threshold is not None
