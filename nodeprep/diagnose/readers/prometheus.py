"""Metrics in the text format of Prometheus, as exporters and textfile collectors write them."""

from __future__ import annotations

from nodeprep.diagnose.readers._plain_document import plain_document

READER = plain_document("prometheus", r"# (?:HELP|TYPE) \w+ |[a-zA-Z_:][\w:]{3,200}\{\w+=\"")
