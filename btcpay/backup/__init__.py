"""Makes backups of the database, and restores them.

After a restore the service never gives out an address that it had given out before.
"""
