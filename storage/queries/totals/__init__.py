"""Running totals, updated in the same transaction as the rows that they sum.

They are balances, daily income, gaps between paid addresses, and counters.
"""
