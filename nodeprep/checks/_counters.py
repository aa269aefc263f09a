"""How far a counter went between two looks, without ever making up a zero."""

from __future__ import annotations

from nodeprep.model.reading import Reading, Unreadable

DRIVER = "the driver was reloaded in between"
DEVICE = "the device was made anew in between"


def grown(old: int, new: int, what: str, why: str) -> int:
    """The growth of a counter that never goes back by itself.

    Args:
        old: Count before.
        new: Count after.
        what: The counter, for the error.
        why: What sets this kind of counter back: DRIVER or DEVICE.

    Raises:
        Unreadable: It went back, so that nobody knows what it had counted by then.
    """
    if new < old:
        raise Unreadable(f"{what} went back from {old} to {new}: {why}")
    return new - old


def growth(old: Reading[int], new: Reading[int], what: str, why: str = DRIVER) -> int:
    """The growth of a counter that must be readable both times.

    Raises:
        Unreadable: It is not, or it went back.
    """
    return grown(old.require(f"{what} before the load"), new.require(f"{what} after the load"), what, why)


def growth_where_counted(old: Reading[int], new: Reading[int], what: str, why: str = DRIVER) -> int | None:
    """The growth of a counter that not every part has; None where it has none.

    Both looks must say so: a part does not lose a counter under load.

    Raises:
        Unreadable: It could not be read, was there only once, or went back.
    """
    if old.state == new.state == "not_supported":
        return None
    return growth(old, new, what, why)
