"""`verify-proof`: checks the file of `invoice show --proof` offline."""

from typing import BinaryIO

import click

from btcpay.cli.context import as_json, show
from btcpay.proofs.document import check_document, load
from btcpay.values.errors import CommandError, ProofFailed
from btcpay.values.times import iso

PROOF_COLUMNS = "txid vout amount_sats script block_hash mined_at network"


@click.command("verify-proof")
@click.argument("file", type=click.File("rb"))
@as_json
def verify_proof(file: BinaryIO, as_json: bool) -> None:
    """Check a file of `invoice show --proof` offline, from the file alone.

    Exit status 1 when anything in it is wrong.
    """
    rows = []
    for document in load(file.read()):
        try:
            proven = check_document(document)
        except ProofFailed as error:
            raise CommandError(f"the proof fails: {error}") from error
        found = {"txid": proven.txid, "block_hash": proven.block_hash}
        found |= {"mined_at": iso(proven.mined_at)}
        found |= {"script": document["script"], "network": document["network"]}
        for vout, amount_sats in proven.amounts_sats.items():
            rows.append(found | {"vout": vout, "amount_sats": amount_sats})
    show(rows, PROOF_COLUMNS, as_json)
