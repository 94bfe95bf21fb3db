"""Whoever tells us of the chain: Esplora over HTTP, within a quota, believed as little as can be."""
