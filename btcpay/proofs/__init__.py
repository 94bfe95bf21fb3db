"""Proofs of payment by simplified payment verification (SPV)."""
