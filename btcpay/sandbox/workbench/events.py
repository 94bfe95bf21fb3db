"""What the shop has told: the newest events of the file into which its receiver prints them."""

import json
import os
from pathlib import Path
from typing import Any

FILE = "webhooks.log"
TAIL_BYTES = 100_000
SHOWN = 14
GENUINE = b"signed "


def newest_events(state_dir: Path) -> list[dict[str, Any]]:
    """Newest first: type, time, invoice, how many satoshis; empty without a file."""
    try:
        with (state_dir / FILE).open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES)
            file.seek(start)
            lines = file.read().splitlines(keepends=True)[1 if start else 0 :]
    except FileNotFoundError:
        return []
    # The last line may not be whole yet.
    whole = [line for line in lines if line.startswith(GENUINE) and line.endswith(b"\n")]
    return [_shown(json.loads(line.removeprefix(GENUINE))) for line in whole[-SHOWN:][::-1]]


def _shown(event: dict[str, Any]) -> dict[str, Any]:
    data = event["data"]
    invoice = data.get("invoice") or {}
    about = data.get("payment") or data.get("transaction") or invoice
    return {
        "type": event["type"],
        "time": event["timestamp"][11:19],
        "invoice": invoice.get("id"),
        "pay_url": invoice.get("pay_url"),
        "amount_sats": about.get("amount_sats"),
    }
