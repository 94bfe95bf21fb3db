"""The best chain as we keep it: its headers, and which of its blocks are to be read."""
