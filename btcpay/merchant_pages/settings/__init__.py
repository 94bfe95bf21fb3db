"""The settings that a merchant changes in the browser; the rules are those of the commands."""
