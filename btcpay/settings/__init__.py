"""The settings, their parsers, and the format of log lines."""
