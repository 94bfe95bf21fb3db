"""Reads the texts that wallets export, or that people paste, as accounts."""
