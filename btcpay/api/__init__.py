"""The way of a request to an operation: key, limits, scope, body, idempotency, answer."""
