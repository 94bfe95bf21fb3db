"""Proof of payment by simplified payment verification: no explorer is believed."""
