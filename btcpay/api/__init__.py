"""A request's way to its operation: key, limits, scope, body, idempotency, answer."""
