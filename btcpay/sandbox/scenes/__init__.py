"""Whole stories, each played by one press: payers, miners, explorers, and the shop's answers."""
