"""What is known of each vendor beyond its registry, one a file."""
