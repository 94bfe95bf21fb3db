"""Composes mails to merchants and to their customers, and sends them."""
