"""The command `sandbox`."""
