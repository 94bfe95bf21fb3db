"""Exports for bookkeepers and wallets."""
