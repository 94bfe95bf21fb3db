"""The common parts of hosted pages: frame, files, the reader's language, errors, headers."""
