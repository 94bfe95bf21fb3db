"""The cron run: which addresses are scanned, what was seen there, what is written."""
