"""The price of a bitcoin in dollars and other currencies."""
