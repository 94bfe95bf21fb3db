"""The sandbox's regtest node: its chain, its mempool, and their rules."""
