"""The exchange rate of bitcoin."""
