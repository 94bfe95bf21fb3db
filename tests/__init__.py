"""The tests, and what they share in `support`."""
