"""A soak: the same run, leg after leg, until its time is over, whatever happens to it meanwhile.

A leg is a whole run with a result of its own, so a kill or a reboot costs one leg and no more, and the
soak's result is made from those of its legs. Started again with the same arguments in the same folder,
it goes on where it was, and the time between is a gap that the result names. See docs/adr/0060.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from dataclasses import replace
from typing import Any, Dict

from . import files, soak_merge, soak_state
from .options import Options
from .run import COMPLETED, EXIT_CODES, FAILED, INTERRUPTED, Run
from .soak_state import Leg, SoakState

# A leg shorter than this is over before it has begun.
LEAST_LEG_S = 120.0
SIMULATED_LEAST_LEG_S = 2.0
# Longer than a start with a cold disk, torch and CUDA: below it is the change of legs, above it a gap. A leg
# that was lost is a gap however short.
LEAST_GAP_S = 120.0


class Soak:
    """One soak; `execute` it once in each life of the process."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._total_s = options.budget.soak_s
        self._least_leg_s = SIMULATED_LEAST_LEG_S if options.simulated else LEAST_LEG_S

    def execute(self) -> int:
        """Runs the legs that are left and writes the result; returns the exit code."""
        try:
            self._folder = files.Folder(self._options.out, keep_progress=True)
            self._state = soak_state.load(self._options.out, self._identity())
            self._clear_foreign_legs()
            self._go_on()
            return self._conclude()
        except OSError as error:
            print("failed: %s" % files.explain(error, self._options.out), file=sys.stderr)
            return FAILED

    def _identity(self) -> str:
        options = self._options
        parts = [options.run, options.workload.digest, options.inject, options.root, *options.gpus]
        return hashlib.sha256(json.dumps([self._total_s, *parts]).encode()).hexdigest()

    def _clear_foreign_legs(self) -> None:
        if not self._state.legs:
            shutil.rmtree(self._folder.file(soak_state.LEGS), ignore_errors=True)
        else:
            self._say("going on after %d legs" % len(self._state.finished()))

    def _go_on(self) -> None:
        code = COMPLETED
        while code == COMPLETED:
            left = self._state.started + self._total_s - time.time()
            if left < self._least_leg_s:
                return
            code = self._run_leg(left)

    def _run_leg(self, left_s: float) -> int:
        options, budget = self._options, self._options.budget
        leg = Leg(len(self._state.legs) + 1, time.time(), soak_state.boot_id(options.root))
        self._keep(self._state.with_leg(leg))
        total = None if budget.total_s is None else min(budget.total_s, left_s)
        folder = self._folder.file(leg.folder)
        run = Run(replace(options, out=folder, budget=replace(budget, total_s=total)), self._pass_on)
        code = run.execute()
        state = next(name for name, number in EXIT_CODES.items() if number == code)
        if os.path.exists(os.path.join(folder, files.RESULT)):
            self._keep(self._state.with_leg(replace(leg, ended=time.time(), state=state)))
            self._keep_last_samples(folder)
        return INTERRUPTED if run.signalled else code

    def _keep(self, state: SoakState) -> None:
        self._state = state
        soak_state.save(self._options.out, state)

    def _keep_last_samples(self, folder: str) -> None:
        """Days of samples would fill the disk: those of the last leg stay, summaries of all."""
        for name in os.listdir(folder):
            if name.startswith("telemetry-"):
                os.replace(os.path.join(folder, name), self._folder.file(name))

    def _conclude(self) -> int:
        legs = [self._result(leg) for leg in self._state.finished()]
        now = time.time()
        gaps = self._state.gaps(min(now, self._state.started + self._total_s), LEAST_GAP_S)
        account = {
            "wanted_s": self._total_s,
            "lasted_s": round(now - self._state.started, 1),
            "legs": len(legs),
            "lost_legs": len(self._state.legs) - len(legs),
            "gaps": [gap.document() for gap in gaps],
        }
        if not legs:
            print("failed: no leg of the soak left a result", file=sys.stderr)
            return FAILED
        starts = [leg.started - self._state.started for leg in self._state.finished()]
        document = soak_merge.merged(legs, starts, account)
        self._folder.write_result(document)
        self._say("%s: %d legs, %d gaps" % (document["state"], len(legs), len(gaps)), percent=100)
        return EXIT_CODES[document["state"]]

    def _result(self, leg: Leg) -> Dict[str, Any]:
        with open(os.path.join(self._folder.file(leg.folder), files.RESULT), encoding="utf-8") as file:
            document: Dict[str, Any] = json.load(file)
        return document

    def _pass_on(self, line: Dict[str, Any]) -> None:
        """A leg's progress, in the soak's own time."""
        self._folder.progress({**line, "t_s": self._elapsed(), "percent": self._percent()})

    def _say(self, message: str, *, percent: int = -1) -> None:
        line = {"t_s": self._elapsed(), "phase": "soak", "message": message, "gpu": ""}
        self._folder.progress({**line, "percent": self._percent() if percent < 0 else percent})

    def _elapsed(self) -> float:
        return round(time.time() - self._state.started, 1)

    def _percent(self) -> int:
        return max(0, min(99, int(100 * self._elapsed() / self._total_s)))
