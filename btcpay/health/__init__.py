"""The service's health checks and metrics, for its operators."""
