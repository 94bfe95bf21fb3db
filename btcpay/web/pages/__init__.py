"""What all hosted pages share: their frame and files, the reader's language, errors, headers."""
