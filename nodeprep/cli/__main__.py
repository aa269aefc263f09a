"""The program: `nodeprep`, and `python -m nodeprep.cli` where its script is not on PATH."""

from __future__ import annotations

import sys


def run() -> None:
    """Runs the command line and exits. Ctrl-C while it is still loading ends it as one later does."""
    try:
        from nodeprep.cli.main import invoke  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)
    sys.exit(int(invoke(sys.argv[1:])))


if __name__ == "__main__":
    run()
