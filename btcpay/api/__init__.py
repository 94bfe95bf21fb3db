"""The API: checks key, limits, scope and body of a request, and runs its operation."""
