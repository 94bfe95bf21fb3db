"""Nodes of the Bitcoin network, asked by its own protocol for headers and whole blocks."""
