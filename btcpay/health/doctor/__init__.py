"""The examinations of `blocktill doctor`, with one module for each subject."""
