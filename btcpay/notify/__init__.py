"""Events, and the delivery of each to its receivers."""
