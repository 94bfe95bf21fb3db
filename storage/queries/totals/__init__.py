"""Running totals, updated in the same database transaction as the rows that they sum.

They are balances, daily income, gaps between paid addresses, and counters.
"""
