"""Whole stories that one press plays: payers, miners, explorers, and what the shop does."""
