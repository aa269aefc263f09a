"""The head of nvidia-bug-report.log; its sections are read each by its own format."""

from __future__ import annotations

from nodeprep.diagnose.readers._plain_document import plain_document

READER = plain_document("nvidia_bug_report", r"Start of NVIDIA bug report log file", sure=97)
