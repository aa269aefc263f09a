"""A headless Chromium over its debugging pipe: no driver, no extra dependency, no network.

    python tests/browser/chromium.py report.html picture.png --width 1280 --scheme dark

makes a picture of a page, which is how those in docs/img/ are taken.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


# Chromium reads commands on descriptor 3 and answers on 4, each message ended by a NUL.
_ON_3_AND_4 = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(reads, 3)
os.dup2(writes, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    """The first Chromium on PATH, or the one named by NODEPREP_CHROMIUM."""
    named = os.environ.get("NODEPREP_CHROMIUM")
    if named:
        return named
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chromium:
    """One browser with one page. A context manager: the browser and its profile are gone afterwards."""

    def __init__(self, executable: str) -> None:
        self.blocked: list[str] = []
        self._sent: dict[str, str] = {}
        self.errors: list[str] = []
        self._next_id = 0
        self._pending = b""
        self._profile = tempfile.TemporaryDirectory(prefix="nodeprep-chromium-")
        reads, self._to = os.pipe()
        self._from, writes = os.pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the browser
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _ON_3_AND_4,
                str(reads),
                str(writes),
                executable,
                *FLAGS,
                f"--user-data-dir={self._profile.name}",
            ],
            pass_fds=(reads, writes),
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        os.close(reads)
        os.close(writes)
        target = self.call("Target.createTarget", session=None, url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", session=None, targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._to)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._from)
        self._log.close()
        for _attempt in range(20):
            try:
                self._profile.cleanup()
                return
            except OSError:  # a helper process of the browser is still writing its last file
                time.sleep(0.1)

    @property
    def requests(self) -> list[str]:
        """What the page asked for and was allowed to; `blocked` has the rest with the reason."""
        return list(self._sent.values())

    def call(
        self, method: str, *, session: str | None = "", timeout_s: float = 60.0, **params: Any
    ) -> dict[str, Any]:
        """One command of the DevTools protocol; its result."""
        self._next_id += 1
        message: dict[str, Any] = {"id": self._next_id, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session or self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        wanted = self._next_id
        answer = self._read(lambda got: got.get("id") == wanted, timeout_s)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, url: str, *, width: int = 1280, height: int = 900, scheme: str = "light") -> None:
        """Loads a page and waits until its scripts have run and two frames are painted."""
        self.errors.clear()
        self.blocked.clear()
        self._sent.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.call("Page.navigate", url=url)
        self.wait_for_load()
        self.settle()

    def wait_for_load(self) -> None:
        """Waits for the load event."""
        self._read(lambda got: got.get("method") == "Page.loadEventFired", 60)

    def settle(self) -> None:
        """Waits for two painted frames: observers have then been called."""
        frame = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
        self.evaluate(frame)

    def wait_for(self, expression: str, *, timeout_s: float = 10.0) -> None:
        """Waits until a JavaScript expression is true."""
        deadline = time.monotonic() + timeout_s
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {timeout_s} s: {expression}")
            self.settle()

    def evaluate(self, expression: str) -> Any:
        """A JavaScript expression in the page; promises are awaited."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:2000])
        return result["result"].get("value")

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """A PNG of what is in view, or of the whole page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def paper(self, path: Path) -> None:
        """The page as it prints."""
        data = self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def _read(self, wanted: Callable[[dict[str, Any]], bool], timeout_s: float) -> dict[str, Any]:
        deadline = time.monotonic() + timeout_s
        while True:
            while b"\0" in self._pending:
                raw, self._pending = self._pending.split(b"\0", 1)
                got = json.loads(raw)
                self._note(got)
                if wanted(got):
                    return got
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._from], [], [], left)[0]:
                raise TimeoutError(f"Chromium did not answer within {timeout_s} s: {self._said()}")
            chunk = os.read(self._from, 1 << 20)
            if not chunk:
                raise RuntimeError(f"Chromium went away: {self._said()}")
            self._pending += chunk

    def _note(self, got: dict[str, Any]) -> None:
        method, params = got.get("method"), got.get("params", {})
        if method == "Network.requestWillBeSent":
            self._sent[params["requestId"]] = params["request"]["url"]
        elif method == "Network.loadingFailed" and params.get("blockedReason"):
            self.blocked.append(f"{params['blockedReason']} {self._sent.pop(params['requestId'])}")
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"])[:2000])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(params["args"])[:2000])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(json.dumps(params["entry"])[:2000])

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read()[-2000:].decode(errors="replace")


def main() -> None:
    """Takes one picture."""
    parser = argparse.ArgumentParser(description="A picture of an HTML file.")
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path, help=".png, or .pdf for the page as it prints")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--scheme", choices=("light", "dark"), default="light")
    parser.add_argument("--whole", action="store_true", help="the whole page, not the first screen")
    parser.add_argument("--run", default="", help="JavaScript to run first")
    args = parser.parse_args()
    executable = find()
    if executable is None:
        raise SystemExit("no Chromium found; set NODEPREP_CHROMIUM")
    with Chromium(executable) as browser:
        browser.open(args.page.resolve().as_uri(), width=args.width, height=args.height, scheme=args.scheme)
        if args.run:
            browser.evaluate(args.run)
            browser.settle()
        if args.picture.suffix == ".pdf":
            browser.paper(args.picture)
        else:
            browser.picture(args.picture, whole=args.whole)
        for error in browser.errors:
            print(error)


if __name__ == "__main__":
    main()
