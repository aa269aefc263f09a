"""Demo: the whole path on a simulated rack with known faults, each of which must come out right."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

from nodeprep.bmc.redfish.patience import Clock
from nodeprep.errors import UsageError
from nodeprep.fleet import FleetEvent
from nodeprep.model.codec import encode_pretty
from nodeprep.model.outputs import DemoResult
from nodeprep.sim.rack import build_rack
from nodeprep.sim.rack_bmcs import HURRY, serving_bmcs
from nodeprep.sim.stories import check_stories
from nodeprep.workflows.apply import Budget, apply
from nodeprep.workflows.asking import CertifyOptions
from nodeprep.workflows.certify import certify
from nodeprep.workflows.home import Home
from nodeprep.workflows.plan import plan
from nodeprep.workflows.session import Notify, Request, Session

_MARK = ".nodeprep-demo"


def demo(folder: Path, *, nodes: int, notify: Notify) -> DemoResult:
    """Builds the rack, plans, applies and certifies it with the ordinary workflows.

    Writes FOLDER/report.html, FOLDER/certificates/NODE.json and FOLDER/demo.pub. The folder's own
    key signs; it is marked as simulated like everything it signs.

    Args:
        folder: Made anew. One that is not an earlier demo is left alone.
        nodes: How many.
        notify: Gets the progress of every stage.

    Raises:
        UsageError: The folder holds something else, or numpy is missing.
    """
    started = time.monotonic()
    _need_numpy()
    folder = folder.absolute()
    _clear(folder)
    home = Home(folder / "home")
    built = build_rack(folder / "rack", nodes=nodes)
    request = Request(inventory=built.inventory)
    with serving_bmcs(built) as rack:
        with Session(replace(request, output=folder / "runs" / "apply"), "apply", home=home) as session:
            session.notify = _stage("apply", notify)
            session.make_clock = _Hurried
            apply(session, plan(session), Budget())
        with Session(replace(request, output=folder), "certify", home=home) as session:
            session.notify = _stage("certify", notify)
            session.make_clock = _Hurried
            certified = certify(session, CertifyOptions())

    shutil.copyfile(home.keys / "simulated.pub", folder / "demo.pub")
    stories = check_stories(rack, {host: each.certificate for host, each in certified.items()})
    result = DemoResult(
        folder=str(folder),
        report=str(folder / "report.html"),
        all_told_right=all(story.told_right for story in stories),
        stories=tuple(stories),
        duration_s=round(time.monotonic() - started, 1),
    )
    (folder / "stories.json").write_bytes(encode_pretty(result))
    return result


class _Hurried(Clock):
    """The time of the simulated BMCs, which runs faster than that of people."""

    def now(self) -> float:
        return time.monotonic() * HURRY

    def wait(self, seconds: float) -> None:
        super().wait(seconds / HURRY)


def _stage(name: str, notify: Notify) -> Notify:
    def tell(event: FleetEvent) -> None:
        notify(replace(event, message=f"{name}: {event.message}"))

    return tell


def _clear(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        if not (folder / _MARK).is_file():
            raise UsageError(
                f"{folder} is not an earlier demo, so it is left alone", hint="name a new folder with -o"
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).write_text("A demo folder of nodeprep: simulated, made anew by every demo.\n")


def _need_numpy() -> None:
    try:
        import numpy  # noqa: F401, PLC0415 - only asked for, never used here
    except ImportError:
        raise UsageError(
            "the simulated rack computes with numpy, which is not installed",
            hint="pip install 'nodeprep[sim]'",
        ) from None
