"""Settings, the parsers of their texts, and the form of the logs."""
