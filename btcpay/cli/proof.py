"""Command `verify-proof`: checks the proofs of an invoice's payments offline."""

from typing import BinaryIO

import click

from btcpay.cli.output import show
from btcpay.cli.shell import json_option
from btcpay.proofs.document import check_document, parse_documents
from btcpay.values.errors import CommandError, ProofFailed
from btcpay.values.times import iso

COLUMNS = "txid vout amount_sats script block_hash mined_at network"


@click.command("verify-proof")
@click.argument("file", type=click.File("rb"))
@json_option
def verify_proof(file: BinaryIO, as_json: bool) -> None:
    """Check the proofs in a file that `invoice show --proof` has printed. Works offline.

    Exit status 1 if a proof is wrong, else 0.
    """
    rows = []
    for document in parse_documents(file.read()):
        try:
            proven = check_document(document)
        except ProofFailed as error:
            raise CommandError(f"the proof fails: {error}") from error
        facts = document | vars(proven) | {"mined_at": iso(proven.mined_at)}
        for vout, amount_sats in proven.amounts_sats.items():
            rows.append(facts | {"vout": vout, "amount_sats": amount_sats})
    show(rows, COLUMNS, as_json)
