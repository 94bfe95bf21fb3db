"""What a bitcoin is worth."""
