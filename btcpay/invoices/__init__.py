"""An invoice's life: made, looked at, ended, explained."""
