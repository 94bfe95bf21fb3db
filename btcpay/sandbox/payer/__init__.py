"""The sandbox's customer: a wallet that pays, replaces and double-spends."""
