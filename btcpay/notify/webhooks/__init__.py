"""Events sent to whoever wants them: signed, tried again, logged (Standard Webhooks 1.0.0)."""
