"""Commands about merchants."""
