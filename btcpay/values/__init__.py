"""Basic value types and their functions, which any other package may import."""
