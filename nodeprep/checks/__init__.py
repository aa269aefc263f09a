"""One check a file; see _check.py for what a check is and docs/checks/ for what each means."""
