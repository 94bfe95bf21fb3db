"""The best chain as we keep it: its headers, and the blocks still to be read."""
