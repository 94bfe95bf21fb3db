"""What is kept as a sum, in step with the rows that it sums; what explorers and peers have done."""
