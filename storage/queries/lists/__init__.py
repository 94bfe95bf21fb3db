"""Lists and pages of a merchant's rows: page by page, by day, in an export."""
