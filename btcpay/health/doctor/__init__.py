"""What `btcpay doctor` looks into, each thing in a file of its own."""
