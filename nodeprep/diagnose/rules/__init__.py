"""Which events belong together and why, one causal rule a file."""
