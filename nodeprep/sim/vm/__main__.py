"""`python -m nodeprep.sim.vm`."""

from __future__ import annotations

import sys

from nodeprep.sim.vm.cli import main

sys.exit(main())
