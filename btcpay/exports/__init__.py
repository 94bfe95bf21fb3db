"""Exports payments for bookkeeping, and labels for wallets."""
