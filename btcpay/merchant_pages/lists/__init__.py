"""Long lists: searched, page by page, and taken away as files."""
