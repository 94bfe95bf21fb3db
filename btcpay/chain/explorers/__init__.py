"""Explorers: Esplora over HTTP, within a quota; what they say is proven or bounded."""
