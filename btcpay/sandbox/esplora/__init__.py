"""What the sandbox serves as an Esplora explorer."""
