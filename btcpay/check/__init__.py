"""The cron run: reads blocks, looks at the mempool, and writes the payments that they show."""
