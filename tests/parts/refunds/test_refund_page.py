"""The payer's page: an address is shown back, kept at a second press, and followed to its block."""

import re

import pytest

from btcpay.languages.catalogs import LANGUAGES
from btcpay.parts.refunds import actions, steps
from tests.support.builders import finish
from tests.support.payer import Page
from tests.support.shop_refunds import address, found, give, made, paid, send, sent


@pytest.fixture
def refund(till):
    return made(till, paid(till))


def page(till, refund, **query):
    answer = till.shop.client.get(f"/refund/{refund.id}", query_string=query)
    assert answer.status_code == 200
    return answer.text


def post(till, refund, **fields):
    return till.shop.client.post(f"/refund/{refund.id}", data=fields)


def test_an_address_is_shown_back_and_kept_at_the_second_press(till, refund):
    assert 'id="give"' in page(till, refund)
    led = post(till, refund, address=f"bitcoin:{address(1)}?amount=7")
    # Led there by 303, so that Back from the next page asks nobody to send the form again.
    assert (led.status_code, led.headers["Location"]) == (
        303,
        f"{refund.id}?address={address(1)}",
    )
    shown = till.shop.client.get(f"/refund/{led.headers['Location']}")
    assert shown.status_code == 200 and "P2WPKH" in shown.text
    groups = [address(1)[at : at + 4] for at in range(0, len(address(1)), 4)]
    assert all(f"<span>{group}</span>" in shown.text for group in groups)
    assert found(till, refund).status == "requested"
    kept = post(till, refund, address=address(1), keep="yes")
    assert (kept.status_code, kept.headers["Location"]) == (303, refund.id)
    assert found(till, refund).address == address(1)
    assert 'id="confirm"' not in page(
        till, refund, address=address(2)
    )  # Back, and again
    again = post(till, refund, address=address(2), keep="yes")
    assert again.status_code == 400 and address(2) not in again.text
    assert found(till, refund).address == address(1)


@pytest.mark.parametrize(
    "text", ["", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "<b>\0\u202e"]
)
def test_what_is_no_address_is_refused_beside_its_field(till, refund, text):
    if text:
        led = till.shop.client.get(
            f"/refund/{refund.id}", query_string={"address": text}
        )
        assert led.status_code == 400 and 'aria-invalid="true"' in led.text
    answer = post(till, refund, address=text)
    assert answer.status_code == 400
    assert 'aria-invalid="true"' in answer.text and 'role="alert"' in answer.text


def test_what_wallets_copy_beside_addresses_has_its_own_sentence(till, refund):
    texts = {
        f"bitcoin:{address(1)}?req-nonsense=1": "copy only the address",
        "lnbc1pvjluez": "for Lightning",
        "sp1qqgste7k9hx0": "Silent payment",
        "PM8T" + "J" * 112: "many addresses",
    }
    for text, said in texts.items():
        answer = post(till, refund, address=text)
        assert answer.status_code == 400 and said in Page(answer.text).texts["problem"]
    assert found(till, refund).status == "requested"


def test_each_state_says_what_happens_next_in_every_language(till, refund):
    def seen():
        found = {
            language: Page(page(till, refund, lang=language)) for language in LANGUAGES
        }
        return {language: one.texts["state"] for language, one in found.items()}

    states = [seen()]
    given = give(till, refund, address(1))
    states.append(seen())
    txid = sent(till, given)
    states.append(seen())
    assert txid in page(till, refund)
    for language in LANGUAGES:
        assert len({one[language] for one in states}) == 3
    assert len(set(states[0].values())) == len(LANGUAGES)


def test_the_receipt_says_what_was_sent_back_in_money_and_in_bitcoin(till, refund):
    send(till, give(till, refund, address(1)))
    till.mine()

    def line():
        source = till.shop.client.get(f"/pay/{refund.invoice_id}").text
        cell = re.search(r'<dd class="refund">(.*?)</dd>', source)
        return cell and re.sub("<[^>]*>", "", cell[1])

    assert line() is None
    till.check()
    height = found(till, refund).sent_height
    assert line() == f"$25.00 · 0.00041667 BTC in block {height:,}"
    till.shop.sql("UPDATE refund SET asked_amount = '22.50', asked_currency = 'EUR'")
    assert line().startswith("€22.50 · 0.00041667 BTC in block ")


def test_who_got_a_refund_twice_reads_where_one_may_go_back_to(till):
    invoice = paid(till)
    refund = made(till, invoice, 10_000, address(1))
    sent(till, refund)
    path = f"/refund/{refund.id}"
    assert "twice" not in Page(till.shop.client.get(path).text).texts
    sent(till, refund)
    text = Page(till.shop.client.get(path).text).texts["twice"]
    assert text.endswith(f"to which you paid: {invoice['deposit_address']}")


def test_a_canceled_one_asks_for_nothing_and_another_id_finds_nothing(till, refund):
    actions.drop(till.shop.service.db, refund.id, steps.CANCELED, till.clock())
    assert "<form" not in page(till, refund)
    for id in ("rfd_" + "0" * 24, "x", refund.invoice_id):
        assert till.shop.client.get(f"/refund/{id}").status_code == 404
        assert till.shop.client.post(f"/refund/{id}").status_code == 404


def test_a_refund_pages_address_is_a_secret_that_no_other_site_is_told(till, refund):
    answer = till.shop.client.get(f"/refund/{refund.id}")
    assert answer.headers["Referrer-Policy"] == "strict-origin"


BEYOND = {
    "in excess": (None, "more arrived than was asked for, worth $5.00."),
    "after its deadline": (
        "expired",
        "arrived, worth $5.00 at this payment\u2019s price.",
    ),
}


@pytest.mark.parametrize("case", BEYOND)
def test_a_page_asks_nobody_to_ask_for_what_was_sent_back(till, case):
    end, sentence = BEYOND[case]
    invoice = till.shop.invoice(expires_in_hours=1)
    if end:
        till.clock.move(hours=2)
        finish(till.shop, invoice, end)
    till.confirm(invoice, 8_333 if end else invoice["amount_sats"] + 8_333)

    def beyond():
        receipt = Page(till.shop.client.get(f"/pay/{invoice['id']}").text)
        return " ".join(receipt.texts["beyond"].split())

    def returned_sats():
        return till.shop.client.get(f"/pay/{invoice['id']}/status").json[
            "returned_sats"
        ]

    assert sentence in beyond() and "ask the seller" in beyond()
    assert returned_sats() == 0
    part = give(till, made(till, invoice, 3_333), address(1))
    assert "has sent" not in beyond()
    sent(till, part)
    assert "The seller has sent 0.00003333 BTC back." in beyond()
    assert "If you expect more, please ask the seller." in beyond()
    sent(till, give(till, made(till, invoice, 5_000), address(2)))
    assert "The seller has sent 0.00008333 BTC back." in beyond()
    assert returned_sats() == 8_333
    assert "ask the seller" not in beyond()
