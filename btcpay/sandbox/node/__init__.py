"""The sandbox's regtest node: its chain, its mempool, and the rules of both."""
