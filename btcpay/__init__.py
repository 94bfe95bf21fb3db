"""On-chain Bitcoin payments for small merchants."""

__version__ = "0.3.0"

# The parts that a shop can do without. Deleting one takes its folder and its line here.
PARTS: list[str] = []
PARTS += ["btcpay.chain.peers"]
PARTS += ["btcpay.bills"]
PARTS += ["btcpay.cli.sandbox"]
PARTS += ["btcpay.greenfield"]
PARTS += ["btcpay.merchant_pages"]
PARTS += ["btcpay.refunds"]
