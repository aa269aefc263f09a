"""One desired-state unit a file; see _knob.py for what a knob is."""
