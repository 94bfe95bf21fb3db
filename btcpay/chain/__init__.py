"""The best chain as the database has it: headers, and which blocks are still unread."""
