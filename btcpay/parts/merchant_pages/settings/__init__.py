"""The settings that a merchant can change in the browser.

They are checked by the same functions as on the command line.
"""
