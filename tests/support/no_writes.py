"""The running service's answers while its database takes no writes."""

from typing import Any

import requests

from storage.models import IdempotencyKey, Invoice
from storage.queries import merchants
from tests.support.builders import Live, Shop

INVOICES = Invoice.select().order_by(Invoice.seq)
KEYS = IdempotencyKey.select()
WITHIN = ("sqlite", "postgres", "psycopg", "traceback", "disk", "peewee", "read-only")


def counts(shop: Shop) -> tuple[int, int, int]:
    db = shop.service.db
    index = db.get(merchants.BY_ID, id=shop.merchant_id).next_index
    return len(db.rows(INVOICES)), len(db.rows(KEYS)), index


def refuses_orders(live: Live, shop: Shop, link: dict[str, Any]) -> None:
    """Orders fail in the API's envelope and on a page, and tell nothing of what is within."""
    answers = []
    for number in range(3):
        headers = {"Idempotency-Key": f"full-{number}"} if number else {}
        body = {"amount_usd": 25, "description": "x" * 500}
        answers.append(
            live.ask("POST", "/invoices", shop.write_key, json=body, headers=headers)
        )
    for answer in answers:
        assert answer.status_code == 503, answer.text
        error = answer.json()["error"]
        assert error["code"] == "server_error" and "request id req_" in error["message"]
        assert "X-RateLimit-Remaining" in answer.headers
    form = {"amount": "5"}
    page = requests.post(f"{live.url}/link/{link['id']}", data=form, timeout=60)
    assert page.status_code == 503 and page.headers["Content-Type"].startswith(
        "text/html"
    )
    for text in [page.text, *(answer.text for answer in answers)]:
        assert not any(word in text.lower() for word in WITHIN)


def still_reads(live: Live, shop: Shop, invoice: dict[str, Any]) -> None:
    assert (
        live.ask("GET", f"/invoices/{invoice['id']}", shop.read_key).json() == invoice
    )
    assert (
        requests.get(f"{live.url}/pay/{invoice['id']}", timeout=60).status_code == 200
    )
