"""Scenes: demonstrations that a click starts. Payers, miners and explorers act in them."""
