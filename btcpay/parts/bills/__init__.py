"""Bills: an amount that one customer owes, priced each time that something is paid toward it."""
