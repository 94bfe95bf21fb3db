"""Long lists: pagination, search, and downloads as files."""
