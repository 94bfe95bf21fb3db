"""The HTTP client for all outgoing requests."""
