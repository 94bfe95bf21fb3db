"""The examinations of `blocktill doctor`, each subject in a file of its own."""
