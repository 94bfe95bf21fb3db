"""Mail to merchants and to their customers."""
