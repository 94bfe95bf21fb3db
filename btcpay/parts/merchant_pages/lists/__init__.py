"""Long lists: page by page, searched, and downloaded as files."""
