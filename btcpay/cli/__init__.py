"""The command line `blocktill`: a file for each command or group of commands."""
