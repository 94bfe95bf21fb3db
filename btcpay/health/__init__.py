"""Health and metrics of the service, for its operators."""
