"""Seen from outside: health, logs and metrics."""
