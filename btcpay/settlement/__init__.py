"""Settlement: facts about an address and the invoice in, what follows from them out. Pure."""
