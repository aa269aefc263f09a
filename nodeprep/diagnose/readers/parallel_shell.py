"""One command on many nodes, the name of its node before each line: pdsh, clush, talosctl.

`node12: [  966.503025] NVRM: ...`, `10.0.4.19: kern: warning: [2026-04-22T21:27:51.288830314Z]: NVRM: ...`.
"""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import Parsed
from nodeprep.diagnose.readers._log import log_reader, parse_any
from nodeprep.diagnose.readers._time import ISO, MONTH, WEEKDAY, iso

_TALOS = re.compile(
    rf"(?:kern|user|daemon): {{1,4}}[a-z]{{2,8}}: \[(?P<time>{ISO})\]: (?P<text>.*)", re.DOTALL
)
# Programs put their own name before a message in the same way.
_NO_HOST = r"(?!kernel:|NVRM:|dmesg:|nvidia)"
_PATTERN = (
    rf"{_NO_HOST}(?P<host>[A-Za-z0-9][\w.-]{{0,100}}): (?P<text>"
    rf"(?:<\d{{1,3}}>)?\[ {{0,6}}\d{{1,9}}\.\d{{6}}\]|\[{WEEKDAY} |{MONTH} {{1,2}}\d{{1,2}} \d\d:|"
    r"\d{4}-\d\d-\d\dT|"
    r"(?:kern|user|daemon): {1,4}[a-z]{2,8}: \[\d{4}-)(?P<rest>.*)"
)


def _build(match: re.Match[str]) -> Parsed | None:
    text = match["text"] + match["rest"]
    if talos := _TALOS.match(text):
        time, _ = iso(talos["time"])
        return Parsed(text=talos["text"], time=time, host=match["host"], kernel=True)
    parsed = parse_any(text)
    return None if parsed is None else parsed._replace(host=parsed.host or match["host"])


READER = log_reader("parallel_shell", _PATTERN, _build, many_hosts=True)
