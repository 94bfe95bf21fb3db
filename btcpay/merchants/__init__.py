"""Merchants: their accounts' public keys, brands, API keys and sessions."""
