"""The eight operations' way in and out: key, limits, scope, body, idempotency."""
