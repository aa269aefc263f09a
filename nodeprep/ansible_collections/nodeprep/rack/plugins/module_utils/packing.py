# SPDX-License-Identifier: Apache-2.0
"""A tar.gz of evidence that is bounded in size and says what is in it and what is not."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tarfile
import time

MANIFEST = "MANIFEST.json"
# What a job's folder holds beside results: the program, what was packed before, files being written.
_NOT_RESULTS = (".pyz", ".tar.gz", ".partial", ".new")


def results(job_dir):
    """Names of a probe job's result files, the result itself first.

    Raises:
        OSError: The folder is missing or may not be read.
    """
    names = [
        name
        for name in os.listdir(job_dir)
        if not name.startswith(".")
        and not name.endswith(_NOT_RESULTS)
        and os.path.isfile(os.path.join(job_dir, name))
    ]
    return sorted(names, key=lambda name: (name != "result.json", name))


class Bundle:
    """Writes an archive; a part that cannot be had is a line in its manifest, not a failure.

    Args:
        path: The archive; it appears under this name only when it is complete.
        max_bytes: Most bytes of content, before compression.
    """

    def __init__(self, path, max_bytes):
        self.path = path
        self._partial = path + ".partial"
        self._left = max_bytes
        self._parts = []
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        # Kernel logs and bug reports are for root's eyes.
        descriptor = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._file = os.fdopen(descriptor, "wb")
        # Lives as long as the bundle: `close` and `abandon` end it.
        self._tar = tarfile.open(fileobj=self._file, mode="w:gz", compresslevel=6)  # noqa: SIM115

    def add_text(self, name, text, note=""):
        """A log; cut from the front when it does not fit, for the end of a log matters most."""
        data = text.encode()
        cut = len(data) - self._left
        if cut > 0:
            data = data[cut:]
            note = "; ".join(filter(None, [note, "the first %d bytes were cut off" % cut]))
        self._add(name, data, note, cut > 0)

    def add_document(self, name, document):
        """A JSON document, whole or not at all."""
        data = json.dumps(document, indent=2, sort_keys=True).encode() + b"\n"
        if len(data) > self._left:
            self._too_large(name, len(data))
        else:
            self._add(name, data)

    def add_file(self, name, path, note=""):
        """A part from a file; left out when it is missing, no plain file, or does not fit."""
        try:
            # O_NOFOLLOW: this runs as root in folders that others may write to.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            self.miss(name, error.strerror)
            return
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > self._left:
                self._too_large(name, size)
                return
            # Not more than it was when its size was looked at: a log may grow under our hands.
            data = file.read(size)
        self._add(name, data, note)

    def miss(self, name, reason):
        """Notes a part that is not there, and why."""
        self._parts.append({"name": name, "state": "missing", "reason": reason})

    def close(self, **about):
        """Writes the manifest last and puts the archive in its place. Returns the manifest."""
        manifest = dict(about, parts=self._parts)
        self._write(MANIFEST, json.dumps(manifest, indent=2, sort_keys=True).encode() + b"\n")
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.rename(self._partial, self.path)
        return manifest

    def abandon(self):
        """Removes what was written; safe after `close`."""
        for file in (self._tar, self._file):
            # Ending the archive writes; on a full disk that fails, and the file goes all the same.
            with contextlib.suppress(OSError):
                file.close()
        if os.path.exists(self._partial):
            os.unlink(self._partial)

    def _too_large(self, name, size):
        self.miss(name, "%d bytes are more than the %d left in this bundle" % (size, self._left))

    def _add(self, name, data, note="", cut=False):
        self._write(name, data)
        self._left -= len(data)
        part = {
            "name": name,
            "state": "cut" if cut else "included",
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        if note:
            part["reason"] = note
        self._parts.append(part)

    def _write(self, name, data):
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        entry.mode = 0o644
        entry.mtime = int(time.time())
        self._tar.addfile(entry, io.BytesIO(data))
