"""What is known of codes, as data with a source for each entry."""
