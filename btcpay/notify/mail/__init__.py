"""Mails to merchants and to their customers."""
