"""On-chain Bitcoin payments for small merchants."""

__version__ = "0.3.0"

# The parts that a shop can do without. Deleting one takes its folder and its line here.
PARTS: list[str] = []
PARTS += ["btcpay.parts.peers"]
PARTS += ["btcpay.parts.bills"]
PARTS += ["btcpay.parts.sandbox_command"]
PARTS += ["btcpay.parts.greenfield"]
PARTS += ["btcpay.parts.merchant_pages"]
PARTS += ["btcpay.parts.refunds"]
