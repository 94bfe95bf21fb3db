"""An invoice's life: how it is made, where it stands, what happened to it, how it ends."""
