# SPDX-License-Identifier: Apache-2.0
"""Brings an archive from a node and unpacks it; documented in plugins/modules/retrieve.py."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Lets ansible.builtin.fetch bring the file; a node is not trusted with what is in it."""

    TRANSFERS_FILES = True
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        """Fetches, checks, unpacks into a new folder and swaps it in."""
        result = super().run(tmp, task_vars)
        _checked, given = self.validate_argument_spec(
            argument_spec={
                "src": {"type": "str", "required": True},
                "dest": {"type": "path", "required": True},
                "max_bytes": {"type": "int", "default": 512 * 1024 * 1024},
            }
        )
        if self._task.check_mode:
            result.update(changed=True, skipped=True, msg="nothing is fetched in check mode")
            return result
        dest = given["dest"]
        parent = os.path.dirname(os.path.abspath(dest))
        try:
            os.makedirs(parent, exist_ok=True)
            work = tempfile.mkdtemp(prefix=".retrieve-", dir=parent)
        except OSError as error:
            raise AnsibleActionFail("cannot write %s: %s" % (parent, error.strerror)) from error
        try:
            archive = os.path.join(work, "archive.tar.gz")
            fetched = self._fetch(given["src"], archive, task_vars)
            if fetched.get("failed"):
                result.update(fetched)
                return result
            content = os.path.join(work, "content")
            names = _unpack(archive, content, given["max_bytes"])
            _swap(content, dest)
        except (OSError, tarfile.TarError, EOFError) as error:
            raise AnsibleActionFail("cannot unpack %s into %s: %s" % (given["src"], dest, error)) from error
        finally:
            shutil.rmtree(work, ignore_errors=True)
        result.update(changed=True, dest=dest, files=names)
        return result

    def _fetch(self, src, dest, task_vars):
        task = self._task.copy()
        task.args = {"src": src, "dest": dest, "flat": True, "fail_on_missing": True}
        action = self._shared_loader_obj.action_loader.get(
            "ansible.builtin.fetch",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        return action.run(task_vars=task_vars)


def _unpack(archive, folder, max_bytes):
    """Plain files only, none outside the folder, no more bytes than allowed."""
    os.mkdir(folder)
    names = []
    left = max_bytes
    with tarfile.open(archive, "r:gz") as tar:
        for entry in tar:
            if not entry.isfile():
                raise tarfile.TarError("%r is no plain file" % entry.name)
            left -= entry.size
            if left < 0:
                raise tarfile.TarError("more than %d bytes of content" % max_bytes)
            tar.extract(entry, folder, filter="data")
            names.append(entry.name)
    return sorted(names)


def _swap(content, dest):
    if os.path.isdir(dest):
        shutil.rmtree(dest)
    os.rename(content, dest)
