"""Invoices: orders and quotes, creation, state, attention and history."""
