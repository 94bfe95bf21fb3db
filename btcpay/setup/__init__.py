"""What `btcpay setup` does: settings, units, folders, user; the program run as that user."""
