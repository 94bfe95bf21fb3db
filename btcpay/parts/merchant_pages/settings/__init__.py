"""The settings that a merchant changes in the browser, by the same rules as on the command line."""
