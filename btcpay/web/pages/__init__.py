"""The common parts of hosted pages: frame, files, language, errors, headers."""
