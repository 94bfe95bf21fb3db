"""Settings, and what reads them."""
