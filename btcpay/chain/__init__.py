"""The best chain: its sources, its stored headers, and which blocks are still unread."""
