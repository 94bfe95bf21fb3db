"""The pages for developers: API keys with their latest requests, and webhooks."""
