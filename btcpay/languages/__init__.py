"""Translates pages and mails, and formats numbers and times for each language."""
