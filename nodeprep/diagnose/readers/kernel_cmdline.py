"""/proc/cmdline: the arguments of the running kernel, in one line."""

from __future__ import annotations

from nodeprep.diagnose.readers._plain_document import plain_document

READER = plain_document("kernel_cmdline", r"(?:BOOT_IMAGE=|initrd=)\S+ |(?:ro|rw) root=\S+", among=2)
