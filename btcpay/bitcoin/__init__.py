"""Bitcoin's data formats: wire encoding, transactions, blocks, addresses, public keys."""
