"""The settings that a merchant can change in the browser.

The command line has the same settings. The functions that check them are the same too.
"""
