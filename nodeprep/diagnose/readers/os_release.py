"""/etc/os-release."""

from __future__ import annotations

from nodeprep.diagnose.readers._plain_document import plain_document

READER = plain_document("os_release", r"(?:ID|VERSION_ID|PRETTY_NAME|ID_LIKE)=\"?\w")
