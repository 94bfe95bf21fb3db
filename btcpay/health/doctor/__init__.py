"""The examinations of `btcpay doctor`, each subject in a file of its own."""
