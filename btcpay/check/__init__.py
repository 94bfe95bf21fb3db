"""The check, run by cron each minute: reads blocks and the mempool, stores payments."""
