"""What others are told: events, each written in the transaction of what happened."""
