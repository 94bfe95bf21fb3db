"""Commands that manage merchants."""
