"""Webhooks of shops' plug-ins: the dialect of BTCPay Server's Greenfield API."""
