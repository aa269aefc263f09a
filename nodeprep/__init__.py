"""nodeprep: known-good GPU nodes, proven and signed."""

__version__ = "0.1.0"
