"""Outgoing HTTP: the one client."""
