"""What operators see from outside: health, logs and metrics."""
