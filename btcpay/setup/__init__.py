"""The work of `btcpay setup`: settings, units, folders, a user, the program run as that user."""
