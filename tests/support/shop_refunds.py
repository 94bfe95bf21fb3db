"""Refunds of a shop: made, paid by the sandbox's wallet, and the story that they leave."""

from typing import Any

from btcpay.bitcoin.address import witness_script
from btcpay.parts.refunds import actions
from btcpay.parts.refunds.kinds import RESOURCE
from btcpay.parts.refunds.models import Refund
from btcpay.sandbox.node.script import address_of
from storage.queries import invoices
from tests.support.fake_esplora import Till


def address(number: int, version: int = 0) -> str:
    """A payer's address of regtest: P2WPKH, or P2TR for version 1."""
    program = number.to_bytes(32 if version else 20, "big")
    return address_of(witness_script(version, program))


def paid(till: Till, sats: int | None = None, **fields: Any) -> dict[str, Any]:
    """An invoice that a block has paid."""
    invoice = till.shop.invoice(**fields)
    till.confirm(invoice, sats)
    return invoice


def made(
    till: Till, invoice: dict[str, Any], sats: int | None = None, to: str = ""
) -> Refund:
    """A refund of this invoice, with the payer's address if there is one."""
    db = till.shop.service.db
    now = till.clock()
    row = db.get(invoices.WHOLE, id=invoice["id"])
    order = actions.RefundRequest(row.merchant_id, row.id, sats, "returned", to or None)
    return actions.make(db, till.settings, order, now)


def send(till: Till, refund: Refund, sats: int | None = None) -> str:
    """The merchant's wallet sends it; the txid."""
    assert refund.address
    return till.sandbox.wallet.pay(refund.address, sats or refund.amount_sats, till.now)


def sent(till: Till, refund: Refund) -> str:
    """It is sent in a new block, which the shop has read."""
    txid = send(till, refund)
    till.mine_and_check()
    return txid


def give(till: Till, refund: Refund, text: str) -> Refund:
    return actions.give_address(
        till.shop.service.db, till.settings, refund.id, text, till.clock()
    )


def found(till: Till, refund: Refund) -> Refund:
    """The row as it is now."""
    return RESOURCE.find(till.shop.service.db, refund.id)
