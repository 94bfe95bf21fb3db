"""Makes the JSON object of `invoice show --json`."""

import json
from typing import Any

from btcpay.cli.output import json_object
from btcpay.invoices.status import Story
from storage.models import Payment

SHOW_COLUMNS = (
    "id status currency amount price amount_sats amount_usd_quote price_usd reference"
    " description deposit_address address_index payment_link_id return_url tx_hash settled_reason"
    " expires_at paid_at checked_at created_at"
)
VERDICT_COLUMNS = "reason received_sats unconfirmed_sats missing_sats confirmations"
PAYMENT_COLUMNS = "id invoice_id amount_sats amount_usd_at_receipt tx_hash created_at"
OUTPUT_COLUMNS = (
    "txid vout amount_sats first_seen_at block_height block_hash block_time_at spent_height"
    " vanished_at payment_id"
)


def facts_of_story(
    story: Story,
    merchant: str,
    payments: list[Payment],
) -> dict[str, Any]:
    """Returns everything known about the invoice, as the object that --json prints.

    `merchant` is the merchant's name.
    """
    row = story.row
    invoice = {"merchant": merchant} | json_object(row, SHOW_COLUMNS)
    invoice |= json_object({"tip": row.gratuity}, "tip")
    standing = json_object(vars(story.verdict), VERDICT_COLUMNS)
    standing["confirmations_needed"] = story.confirmations_needed
    attention = None
    if row.attention:
        cells = {"reason": row.attention, "since_ms": row.attention_since_ms}
        attention = json_object(cells, "reason since_at")
    events = []
    for event in story.events:
        detail = {"detail": json.loads(event.detail)}
        events.append(json_object(event, "happened_at kind") | detail)
    return {
        "invoice": invoice,
        "standing": standing,
        "attention": attention,
        "payments": [json_object(payment, PAYMENT_COLUMNS) for payment in payments],
        "outputs": [json_object(output, OUTPUT_COLUMNS) for output in story.outputs],
        "events": events,
    }
