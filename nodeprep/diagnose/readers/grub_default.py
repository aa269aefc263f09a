"""/etc/default/grub and the files below /etc/default/grub.d."""

from __future__ import annotations

from nodeprep.diagnose.readers._plain_document import plain_document

READER = plain_document("grub_default", r"\s{0,8}(?:export )?GRUB_[A-Z_]+=")
