"""The settings that a merchant can change in the browser.

They are checked in the same way as on the command line.
"""
