"""A backup's addresses are derived again: a wrong one would take or hide payments."""

from collections.abc import Iterator

from btcpay.bitcoin.address import address_of
from btcpay.bitcoin.hd import InvalidChild
from btcpay.merchants.account import stored_account
from btcpay.settlement.decide import BLOCK_TIME_SLACK
from btcpay.values.errors import CommandError
from btcpay.values.networks import Network
from btcpay.values.times import from_ms, to_ms
from storage.database import Database
from storage.models import Invoice, Merchant
from storage.queries import blocks, invoices, merchants, payments
from storage.queries.lists import exports, keyset
from storage.statement import changed

AT_ONCE = 10_000  # rows


def derive_again(db: Database, network: Network) -> int:
    """Mends each script that is not its address's, and has all blocks since then read again.

    How many those were. Raises CommandError for an address that is not its account key's, and for
    payments to another script: they are somebody else's, or would count twice.
    """
    wrong = [changed(row, script=script) for row, script in _derived(db, network)]
    for row in wrong:
        proofs = db.rows(payments.EVERY_PROOF, invoice_id=row.id)
        if any(f'"script": "{row.script}"' not in proof.document for proof in proofs):
            raise CommandError(
                f"nothing was changed: invoice {row.id} has payments that did not come to its"
                " address"
            )
    with db.write():
        for text in ("id", "script"):  # two may have each other's, and each is unique
            for row in wrong:
                db.run(invoices.SET_SCRIPT, id=row.id, script=getattr(row, text))
        if wrong:
            first = from_ms(min(row.created_at for row in wrong))
            db.run(blocks.READ_SINCE_AGAIN, since=to_ms(first - BLOCK_TIME_SLACK))
    return len(wrong)


def _derived(db: Database, network: Network) -> Iterator[tuple[Invoice, str]]:
    """The invoices whose script is wrong, each with the right one, in hex."""
    for merchant in db.rows(merchants.ALL):
        for rows in keyset.pages(db, exports.INVOICES, AT_ONCE, merchant_id=merchant.id):
            for row in rows:
                if row.script != (script := _script(merchant, row, network)):
                    yield row, script


def _script(merchant: Merchant, invoice: Invoice, network: Network) -> str:
    index, address = invoice.address_index, invoice.deposit_address
    where = f"nothing was changed: invoice {invoice.id} of {merchant.name}"
    try:
        script = stored_account(merchant.descriptor).script(index)
    except InvalidChild as error:
        raise CommandError(f"{where}: {error}") from None
    if address != (derived := address_of(script, network)):
        raise CommandError(f"{where} has {address}, not the address {derived} of its account key")
    return script.hex()
