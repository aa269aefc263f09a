"""The two lines of kernel arguments in /etc/default/grub, a shell file that SUSE's own tools edit as lines.

The edit itself is made by the shell text of the drop-in, on what the file sets.
"""

from __future__ import annotations

import re
from typing import Dict, List

from .. import durable
from ..kernel_cmdline import Edit
from ..paths import under
from ._boot_loader import Refusal
from ._grub_drop_in import text_of
from ._tools import TIMEOUT_S, Run

PATH = "/etc/default/grub"

_NAMES = ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT")
_PRINT = "".join(f'printf "%s\\n" "${{{name}-}}"\n' for name in _NAMES)


def edited(root: str, run: Run, edit: Edit) -> str:
    """The file's text with the edit made.

    Raises:
        OSError, ToolError: It cannot be read.
        Refusal: The lines are more than plain assignments.
    """
    text = durable.content(root, PATH) or ""
    source = f". {_quoted(under(root, PATH))}\n"
    now = _printed(run, source + _PRINT)
    then = _printed(run, source + text_of(edit) + _PRINT)
    for name, old, new in zip(_NAMES, now, then):  # noqa: B905
        if old != new:
            text = _with_line(text, name, f"{name}={_double_quoted(new)}")
    got = _printed(run, text + "\n" + _PRINT)
    if got != then:
        raise Refusal(
            f"the kernel arguments in {PATH} are set by more than one plain line",
            "write GRUB_CMDLINE_LINUX and GRUB_CMDLINE_LINUX_DEFAULT as one line each",
        )
    return text


def lines(root: str) -> Dict[str, str]:
    """The lines that set arguments, as they are written.

    Raises:
        OSError: The file cannot be read.
    """
    text = durable.content(root, PATH) or ""
    found = {name: _line(name).search(text) for name in _NAMES}
    return {name: match.group() for name, match in found.items() if match}


def with_lines(root: str, wanted: Dict[str, str]) -> str:
    """The file's text with these lines; a line that is not among them goes.

    Raises:
        OSError: The file cannot be read.
        Refusal: There are several lines of one name.
    """
    text = durable.content(root, PATH) or ""
    for name in _NAMES:
        text = _with_line(text, name, wanted.get(name, ""))
    return text


def _with_line(text: str, name: str, line: str) -> str:
    found = _line(name).findall(text)
    if len(found) > 1:
        raise Refusal(f"{PATH} sets {name} in more than one line", "leave one of them")
    if found:
        return _line(name).sub(lambda _: line, text) if line else text.replace(found[0] + "\n", "")
    return f"{text.rstrip()}\n{line}\n" if line else text


def _line(name: str) -> re.Pattern[str]:
    return re.compile(rf"^{name}=.*$", re.MULTILINE)


def _printed(run: Run, script: str) -> List[str]:
    return run(["sh", "-c", script], TIMEOUT_S).split("\n")[: len(_NAMES)]


def _double_quoted(text: str) -> str:
    return '"' + re.sub(r'([\\"$`])', r"\\\1", text) + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
