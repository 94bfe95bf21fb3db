"""The data structures of Bitcoin: bytes, transactions, headers, Merkle trees, public keys."""
