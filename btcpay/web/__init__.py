"""What every answer over HTTP shares: the error envelope and the rate limits."""
