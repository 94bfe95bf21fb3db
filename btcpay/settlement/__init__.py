"""Settlement: facts about an invoice and its address go in, the consequences come out. Pure."""
