"""`dmidecode`: what the firmware says of the machine."""

from __future__ import annotations

from nodeprep.diagnose.readers._plain_document import plain_document

READER = plain_document("dmidecode", r"# dmidecode \d|Handle 0x[0-9A-F]{4}, DMI type \d+")
