"""What grub2-mkconfig, update-grub and grubby say while they work."""

from __future__ import annotations

from nodeprep.diagnose.readers._plain_document import plain_document

READER = plain_document(
    "grub_transcript",
    r"Generating grub configuration file|Sourcing file \`/etc/default/grub|Found linux image: ",
)
