"""The command line `blocktill`: one file a command, named as the command."""
