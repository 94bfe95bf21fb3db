"""Proof of payment: evidence held against Bitcoin's own commitments (simplified payment verification)."""
