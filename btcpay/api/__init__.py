"""The API: checks a request's key, rate limits, scope and body, and runs its operation."""
