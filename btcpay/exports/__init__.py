"""Exports of payments for bookkeeping, and of labels for wallets."""
