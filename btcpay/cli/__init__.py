"""The command line `btcpay`: one file a command, named as the command."""
