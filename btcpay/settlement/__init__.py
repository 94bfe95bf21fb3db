"""Computes an invoice's status and payments from the outputs to its address. Pure."""
