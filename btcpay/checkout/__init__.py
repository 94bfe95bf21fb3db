"""The hosted pages: an invoice's checkout and a payment link's page."""
