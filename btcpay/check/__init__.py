"""The cron run: which addresses are looked at, what was seen there, what is written."""
