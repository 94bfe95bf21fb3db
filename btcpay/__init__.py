"""On-chain Bitcoin payments for small merchants."""

__version__ = "0.3.0"
