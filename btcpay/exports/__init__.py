"""What bookkeepers and wallets take away."""
