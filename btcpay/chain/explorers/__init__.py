"""Block explorers with the Esplora HTTP API, called within a quota.

Blocks are verified by proof. Data about addresses cannot be proven; its size and its
amounts are limited.
"""
