"""The code that all HTTP endpoints share: errors, rate limits, and the request log."""
