"""Settlement: computes an invoice's status and payments from outputs and scans.

Pure.
"""
