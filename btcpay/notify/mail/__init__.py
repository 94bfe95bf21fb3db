"""Mail to merchants and their customers, from the same events as webhooks."""
