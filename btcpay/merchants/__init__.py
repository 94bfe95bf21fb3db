"""Merchants: account keys, branding, API keys, and login sessions."""
