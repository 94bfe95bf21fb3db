"""Stores events, and delivers them to webhooks, commands and mailboxes."""
