"""Blocktill: a self-hosted service for on-chain Bitcoin payments to small merchants."""

__version__ = "0.3.0"
