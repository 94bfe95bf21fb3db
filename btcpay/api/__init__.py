"""How a request to an operation gets in and out: key, limits, scope, body, idempotency."""
