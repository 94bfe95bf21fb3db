"""Sums that are kept in step with the rows that they sum; the record of explorers and peers."""
