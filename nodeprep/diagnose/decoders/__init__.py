"""What messages mean, one family a file: lines become typed events."""
