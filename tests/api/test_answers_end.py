"""Every answer in JSON ends with a newline, so that a terminal's prompt begins its own line."""

import pytest
import requests
from builders import Live


@pytest.fixture
def live(shop, tmp_path):
    with Live(shop, tmp_path) as started:
        yield started


def assert_ends(answer: requests.Response) -> None:
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.content.endswith((b"}\n", b"]\n")), answer.content
    assert answer.content.count(b"\n") == 1
    assert int(answer.headers["Content-Length"]) == len(answer.content)


def test_every_answer_in_json_ends_with_a_newline_that_its_length_counts(live, shop):
    made = live.ask("POST", "/invoices", shop.write_key, json={"amount_usd": 25})
    link = live.ask("POST", "/payment-links", shop.write_key, json={})
    answers = [made, link]
    paths = ["/balance", "/invoices", "/payment-links", "/payments", "/nothing", "/openapi.json"]
    paths += [f"/invoices/{made.json()['id']}", f"/payment-links/{link.json()['id']}"]
    answers += [live.ask("GET", path, shop.read_key) for path in paths]
    answers.append(live.ask("GET", "/balance", "wrong"))
    answers.append(live.ask("POST", "/balance", shop.write_key))
    answers.append(live.ask("POST", "/invoices", shop.read_key, json={}))
    answers.append(live.ask("POST", "/invoices", shop.write_key, json={}))
    pages = ["/healthz", "/readyz", f"/pay/{made.json()['id']}/status", "/pay/inv_x/status"]
    answers += [requests.get(f"{live.url}{page}", timeout=20) for page in pages]
    assert {answer.status_code for answer in answers} >= {200, 201, 400, 401, 403, 404, 405, 503}
    for answer in answers:
        assert_ends(answer)


def test_a_replay_is_the_same_to_the_last_byte_also_of_what_an_older_version_kept(shop):
    headers = {"Idempotency-Key": "order 7"}
    first, again = (shop.post("/invoices", {"amount_usd": 25}, headers=headers) for _ in range(2))
    assert again.headers["Idempotent-Replayed"] == "true"
    assert first.data == again.data and first.data.endswith(b"}\n")
    kept = shop.sql("SELECT response FROM idempotency_key").fetchone()[0]
    assert kept.encode() == first.data.rstrip(b"\n")  # as 0.1.0 kept it
