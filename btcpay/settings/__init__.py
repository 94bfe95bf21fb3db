"""Reads and validates the settings, hides their secrets, and formats log lines."""
