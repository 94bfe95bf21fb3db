"""Events, and their delivery to webhooks, commands and mailboxes."""
