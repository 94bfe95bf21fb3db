"""The code that all HTTP endpoints share, such as errors, rate limits and the log."""
