"""The BIOS knobs, one a file."""
