"""An invoice's life: its making, its state, its history and its end."""
