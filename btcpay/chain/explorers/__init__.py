"""Whoever tells us of the chain: Esplora over HTTP, within a quota, and hardly believed."""
