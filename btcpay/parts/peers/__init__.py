"""Nodes of the Bitcoin network, asked by its own protocol for headers and whole blocks."""

from btcpay import hooks

HOOKS = (hooks.Findings, hooks.Sources)
