"""Money that goes back: asked for by the payer, sent by the merchant, proven by a block."""
