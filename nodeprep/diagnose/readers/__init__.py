"""Log formats, one a file: what wraps a message, taken off again."""
