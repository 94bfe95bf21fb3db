"""Lists: a merchant's rows page by page, by day, in an export; the invoices to look for."""
