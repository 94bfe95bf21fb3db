"""The public pages of an invoice (the checkout) and of a payment link."""
