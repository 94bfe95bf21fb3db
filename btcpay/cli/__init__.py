"""The command line `blocktill`: one module for each command or group of commands."""
