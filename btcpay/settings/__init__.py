"""Settings, what reads them, and how the logs are written."""
