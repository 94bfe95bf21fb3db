"""The parts that every answer over HTTP shares: error envelope, rate limits, request log."""
