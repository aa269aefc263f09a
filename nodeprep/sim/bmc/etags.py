"""ETags of the settings resource, with the deviations that real BMCs have."""

from __future__ import annotations

from nodeprep.sim.bmc.conduct import EtagConduct
from nodeprep.sim.bmc.messages import Message, Refused

_DUMMY = "Dummyetag"


def opaque(etag: str) -> str:
    """What stands between the quotes."""
    return etag.removeprefix("W/").strip('"')


class EtagRules:
    """How one BMC writes ETags, and which it accepts in If-Match."""

    def __init__(self, conduct: EtagConduct, base: str) -> None:
        self._conduct = conduct
        self._base = base
        self._races = conduct.races

    def header(self, etag: str) -> str:
        """The ETag header for an ETag as the resource holds it; empty for no header."""
        core = opaque(etag)
        forms = {
            "dump": etag,
            "none": "",
            "weak": f'W/"{core}"',
            "strong": f'"{core}"',
            "double": f'""{core}""',
            "dummy": _DUMMY,
        }
        return forms[self._conduct.form] if etag else ""

    def property(self, etag: str) -> str:
        """The value of @odata.etag; empty for none."""
        if self._conduct.form == "double":
            return f'"{opaque(etag)}"' if etag else ""
        return self.header(etag)

    def check(self, given: str | None, etag: str) -> None:
        """Whether a change may go on.

        Args:
            given: The If-Match header, if any.
            etag: The ETag as the resource holds it.

        Raises:
            Refused: 428 without a header that is needed, 412 with one that does not fit.
        """
        mode = self._conduct.if_match
        if mode == "ignored":
            return
        if given is None:
            if mode != "checked" and etag:
                raise self._needed()
            return
        given = given.strip()
        if self._races > 0 and given != "*":
            self._races -= 1
            raise self._failed()
        if given == "*":
            return
        if mode == "star":
            # Source: ansible-collections/community.general#6434, a weak one counts as none.
            raise self._needed() if given.startswith("W/") else self._failed()
        if given not in self._accepted(etag):
            raise self._failed()

    def _accepted(self, etag: str) -> set[str]:
        core = opaque(etag)
        if self._conduct.form == "dummy" or not etag:
            return set()
        if self._conduct.form == "double" or self._conduct.if_match == "strong":
            return {f'"{core}"'}
        return {self.header(etag) or etag}

    def _needed(self) -> Refused:
        text = "The request requires a precondition: send If-Match with the ETag of the resource."
        return Refused(428, (Message(f"{self._base}.PreconditionRequired", text, severity="Critical"),))

    def _failed(self) -> Refused:
        text = "The ETag supplied did not match the ETag required to change this resource."
        return Refused(412, (Message(f"{self._base}.PreconditionFailed", text, severity="Critical"),))
