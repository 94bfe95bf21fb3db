"""On-chain Bitcoin payments for small merchants."""

__version__ = "0.3.0"

# The parts that a shop can do without. Deleting one takes its folder and its line here.
PARTS: tuple[str, ...] = (
    "btcpay.chain.peers",
    "btcpay.bills",
    "btcpay.cli.sandbox",
    "btcpay.greenfield",
    "btcpay.merchant_pages",
    "btcpay.refunds",
)  # fmt: skip
