"""Lines that part an input into sections: prompts, rules of a bug report, fences of a ticket."""

from __future__ import annotations

import re
from typing import NamedTuple


class Boundary(NamedTuple):
    """A line that ends a section.

    Attributes:
        title: Of the section that follows; "" when the line names none.
        names_next: The next line that is not empty is the title.
        spoken: The line says something itself, as a command does, and belongs to what follows it.
        host: All that follows is of this host, up to where another one is named.
    """

    title: str = ""
    names_next: bool = False
    spoken: bool = False
    host: str = ""


# After "# " only what is surely a command: comments and column headings begin like that as well.
_COMMANDS = (
    "cat|zcat|xzcat|zstdcat|head|tail|grep|egrep|zgrep|sudo|dmesg|journalctl|nvidia-smi|nvidia-bug-report.sh|"
    "lspci|setpci|ipmitool|pyghmiutil|ras-mc-ctl|rasdaemon|mcelog|grub-mkconfig|grub2-mkconfig|update-grub|"
    "update-grub2|grubby|uname|nproc|lscpu|uptime|date|hostname|dmidecode|kubectl|crictl|docker|systemctl|"
    "dcgmi|nvidia-ctk|modinfo|lsmod|modprobe|dkms|sysctl|ls|cd|python|python3|sichek|numactl|free|ps"
)
_WORD = r"(?P<command>(?:\S+/)?\S.*?)\s*$"
_PROMPTS = (
    # [root@node07 ~]# dmesg   root@node07:~# dmesg   user@node:/var/log$ dmesg
    re.compile(r"\[?[\w.-]{1,64}@[\w.-]{1,64}[ :][^\n#$]{0,200}\]?[#$] " + _WORD),
    re.compile(r"\$ " + _WORD),
    re.compile(rf"# (?P<command>(?:\S*/)?(?:{_COMMANDS})(?: .*?|))\s*$"),
)
_RULE = re.compile(r"_{30,}\s*$")
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)[\w-]{0,20}\s*$")
_BUG_REPORT_FILE = re.compile(r"\*\*\* (?P<path>/\S+)\s*$")
# An Ansible ad hoc command: gpu-a | CHANGED | rc=0 >>
_OF_HOST = re.compile(r"(?P<host>[\w.-]{1,100}) \| (?:CHANGED|SUCCESS|FAILED) \| rc=\d{1,3} >>\s*$")
_MAX_BYTES = 1000

NEEDLES = (b"______________________________", b"*** /", b" | rc=")


def boundary(data: bytes) -> Boundary | None:  # noqa: PLR0911  # one return a kind
    """What a line means for the sections of its input; None for nearly all."""
    # The first byte tells nearly always; logs are long.
    if len(data) > _MAX_BYTES or (
        data[:1] not in _FIRST and b"@" not in data[:64] and b" | rc=" not in data[:160]
    ):
        return None
    text = data.decode("utf-8", "replace")
    if match := _OF_HOST.match(text):
        return Boundary(title=match["host"], host=match["host"])
    if _RULE.match(text):
        return Boundary(names_next=True)
    if _FENCE.match(text):
        return Boundary()
    match = _BUG_REPORT_FILE.match(text)
    if match:
        return Boundary(title=match["path"])
    for pattern in _PROMPTS:
        match = pattern.match(text)
        if match:
            return Boundary(title=match["command"], spoken=True)
    return None


_FIRST = (b"[", b"$", b"#", b"_", b"`", b"~", b" ", b"*")
