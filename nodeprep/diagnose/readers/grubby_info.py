"""`grubby --info`: boot entries with their arguments."""

from __future__ import annotations

from nodeprep.diagnose.readers._plain_document import plain_document

READER = plain_document("grubby_info", r"index=\d+$|non linux entry")
