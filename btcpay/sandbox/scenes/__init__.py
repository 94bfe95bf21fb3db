"""Scenes: demonstrations that a click starts, with payers, miners and explorers."""
