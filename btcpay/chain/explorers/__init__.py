"""Explorers: Esplora over HTTP, within a quota; their answers are proven or bounded."""
