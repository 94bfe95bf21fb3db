"""The command `setup`."""
