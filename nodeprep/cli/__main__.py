"""`python -m nodeprep.cli`: the program where its script is not on PATH."""

from nodeprep.cli.main import run

run()
