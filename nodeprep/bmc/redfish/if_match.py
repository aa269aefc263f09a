"""If-Match: which form of its ETag a BMC takes, and whether its refusal means what it says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from nodeprep.bmc.redfish.answers import Answer
from nodeprep.bmc.redfish.etag import candidates
from nodeprep.bmc.redfish.resource import Resource


class Undecided(Exception):
    """No form was taken. Internal: the connection makes PreconditionFailed of it.

    Attributes:
        answer: The last one.
        tried: The values that were sent; "" is a request without the header.
        changed: The resource is another one than was read.
    """

    def __init__(self, answer: Answer, tried: tuple[str, ...], *, changed: bool) -> None:
        super().__init__(answer.words())
        self.answer = answer
        self.tried = tried
        self.changed = changed


def matching(
    send: Callable[[str], Answer],
    body: Mapping[str, Any],
    read: Resource | None,
    read_again: Callable[[str], Resource],
) -> Answer:
    """The answer to the first form of If-Match that is not refused as such; good, or bad for another reason.

    Args:
        send: Sends the request with this value of If-Match; "" for none.
        body: What is sent.
        read: The resource on which the change was decided.

    Raises:
        Undecided: All forms were refused, or the resource was changed since.
    """
    left = list(candidates(read.etag if read is not None else ""))
    tried: list[str] = []
    lost = False
    while True:
        value = left.pop(0)
        answer = send(value)
        lost = lost or answer.after_lost_answer
        answer = dataclasses.replace(answer, after_lost_answer=lost)
        if not answer.wants_other_etag():
            return answer
        tried.append(value)
        if read is not None and read.etag and len(tried) == 1:
            now = read_again(read.uri)
            if _changed(read, now, body, lost=lost):
                raise Undecided(answer, tuple(tried), changed=True)
            # The tags of some firmware change at every look: the newest has the best chance.
            left = [form for form in candidates(now.etag) if form not in tried]
        if not left:
            raise Undecided(answer, tuple(tried), changed=False)


def _changed(before: Resource, now: Resource, body: Mapping[str, Any], *, lost: bool) -> bool:
    """Whether somebody else changed what is staged.

    When an earlier answer was lost, that write may have been carried out: the new tag is then of our making.
    """
    was, is_now = _settings(before.body), _settings(now.body)
    different = {name for name in was.keys() | is_now.keys() if was.get(name) != is_now.get(name)}
    ours = _settings(body) if lost else {}
    return any(name not in ours or is_now.get(name) != ours[name] for name in different)


def _settings(body: Mapping[str, Any]) -> Mapping[str, Any]:
    attributes = body.get("Attributes")
    if isinstance(attributes, Mapping):
        return attributes
    return {name: value for name, value in body.items() if "@" not in name and name != "Attributes"}
