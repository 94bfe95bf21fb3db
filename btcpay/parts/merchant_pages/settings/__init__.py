"""The settings that a merchant can change in the browser.

The same functions check them as on the command line.
"""
