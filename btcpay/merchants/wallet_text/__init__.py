"""Parses texts that wallets export or that people paste, and returns their accounts."""
