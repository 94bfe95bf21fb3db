"""The work of `btcpay setup`: settings, units, folders, the service's user."""
