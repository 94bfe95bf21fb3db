"""Plain values that every room may use."""
