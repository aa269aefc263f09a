"""One file per command; the only code that prints or exits."""
