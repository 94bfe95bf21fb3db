"""The price of a bitcoin."""
