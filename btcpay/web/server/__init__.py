"""The running service: what it holds, how it starts, and how its workers stop."""
