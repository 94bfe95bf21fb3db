"""The project's folders, the tests' published vectors, and the optional parts that are gone."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
TESTS = PROJECT / "tests"
VECTORS = TESTS / "vectors"

# The folders of btcpay/parts/. A deleted one stays in table, picture and documents.
OPTIONAL = (
    "bills",
    "greenfield",
    "merchant_pages",
    "peers",
    "refunds",
    "sandbox_command",
)
GONE = [part for part in OPTIONAL if not (PROJECT / "btcpay/parts" / part).exists()]
