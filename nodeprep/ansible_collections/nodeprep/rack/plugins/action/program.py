# SPDX-License-Identifier: Apache-2.0
"""Puts one of nodeprep's programs on a node; documented in plugins/modules/program.py."""

from __future__ import annotations

import os
import tempfile

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Builds the program on the controller and lets ansible.builtin.copy place it."""

    TRANSFERS_FILES = True
    _supports_check_mode = True

    def run(self, tmp=None, task_vars=None):
        """Builds, copies when the checksum differs, and says what is there now."""
        result = super().run(tmp, task_vars)
        _checked, given = self.validate_argument_spec(
            argument_spec={
                "name": {"type": "str", "choices": ["node", "probe"], "required": True},
                "dest": {"type": "str", "required": True},
            }
        )
        archive = _build(given["name"])
        folder = os.path.dirname(given["dest"])
        made = self._run(
            "ansible.builtin.file", {"path": folder, "state": "directory", "mode": "0755"}, task_vars
        )
        if made.get("failed"):
            result.update(made)
            return result
        descriptor, local = tempfile.mkstemp(suffix=".pyz")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(archive.data)
            copied = self._copy(local, given["dest"], task_vars)
        finally:
            os.unlink(local)
        result.update(copied)
        # A zip file has no readable difference; its digest tells all.
        if self._task.diff and copied.get("changed"):
            result["diff"] = {
                "before_header": given["dest"],
                "after_header": "%s (nodeprep program %s)" % (given["dest"], archive.name),
                "before": "another program, or none\n",
                "after": "sha256 %s\n" % archive.sha256,
            }
        result["changed"] = bool(copied.get("changed")) or bool(made.get("changed"))
        result["nodeprep"] = {
            "programs": {
                archive.name: {"dest": given["dest"], "sha256": archive.sha256, "bytes": len(archive.data)}
            }
        }
        return result

    def _copy(self, local, dest, task_vars):
        task = self._task.copy()
        task.args = {"src": local, "dest": dest, "mode": "0755"}
        task.diff = False
        action = self._shared_loader_obj.action_loader.get(
            "ansible.builtin.copy",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        return action.run(task_vars=task_vars)

    def _run(self, name, arguments, task_vars):
        # In check mode a folder that is missing yet would make copy fail; file then reports "changed".
        return self._execute_module(module_name=name, module_args=arguments, task_vars=task_vars)


def _build(name):
    try:
        from nodeprep.errors import NodeprepError  # noqa: PLC0415 - a missing package is told in words
        from nodeprep.fleet.archive import build  # noqa: PLC0415
    except ImportError as error:
        raise AnsibleActionFail(
            "the Python that runs ansible-playbook has no nodeprep (%s): install it there, "
            "the programs for nodes are part of it" % error
        ) from error
    try:
        return build(name)
    except NodeprepError as error:
        raise AnsibleActionFail("%s (hint: %s)" % (error, error.hint)) from error
