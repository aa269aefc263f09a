"""The locale that Ansible's programs run in: the user's where it will do, C.UTF-8 where it will not."""

from __future__ import annotations

import locale

# The second is for systems of before C.UTF-8.
_FALLBACKS = ("C.UTF-8", "en_US.UTF-8")

# What Ansible's programs have no use for; their environment is visible in /proc.
WITHHELD = ("NODEPREP_BMC_PASSWORD", "NODEPREP_BIOS_PASSWORD")


def utf8_environment() -> dict[str, str]:
    """What to add to the environment of an Ansible program; nothing when its locale is UTF-8 already.

    Ansible refuses to begin in any other locale, and in one that this machine lacks, which is what
    ssh brings along from a desktop with another language (SendEnv LC_*).
    """
    before = locale.setlocale(locale.LC_ALL)
    try:
        if _is_utf8(""):
            return {}
        # LC_ALL is the one that wins over all others, whichever of them is wrong.
        return {"LC_ALL": next(filter(_is_utf8, _FALLBACKS), _FALLBACKS[0])}
    finally:
        locale.setlocale(locale.LC_ALL, before)


def _is_utf8(name: str) -> bool:
    """Whether Ansible would accept this locale; "" means that of the environment."""
    # Source: ansible.cli.initialize_locale, which does exactly this.
    try:
        locale.setlocale(locale.LC_ALL, name)
        encoding = locale.getlocale()[1]
    except (locale.Error, ValueError):
        return False
    return encoding is not None and encoding.lower() in ("utf-8", "utf8")
