"""What the tests share; the first line of each module says what it gives."""
