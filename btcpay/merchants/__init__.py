"""The merchant's wallet, as far as its account's public key goes."""
