"""python -m nodeprep.sim.nspawn."""

import sys

from nodeprep.sim.nspawn.cli import main

sys.exit(main())
