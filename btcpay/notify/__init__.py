"""Events, and who is notified of them."""
