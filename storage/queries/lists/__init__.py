"""Lists: pages of rows, exports, command-line lists, and the invoices to watch."""
