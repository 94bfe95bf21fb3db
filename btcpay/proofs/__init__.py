"""Proof of payment by simplified payment verification: what an explorer shows is checked."""
