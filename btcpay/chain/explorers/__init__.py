"""Block explorers with the Esplora HTTP API, called within a quota.

Blocks are verified by proof. Data about addresses is not proven, only limited in size
and amount.
"""
