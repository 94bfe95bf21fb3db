"""Creates invoices, decides whether they need attention, and ends them."""
