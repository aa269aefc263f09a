# SPDX-License-Identifier: Apache-2.0
"""The record that ends a phase for a host; documented in plugins/modules/phase.py."""

from __future__ import annotations

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Runs on the controller and touches nothing."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        """Returns the record as this task's result."""
        result = super().run(tmp, task_vars)
        _checked, given = self.validate_argument_spec(
            argument_spec={
                "name": {"type": "str", "required": True},
                "state": {"type": "str", "choices": ["done", "failed"], "default": "done"},
                "error": {"type": "str", "default": ""},
                "hint": {"type": "str", "default": ""},
                "data": {"type": "dict", "default": {}},
            }
        )
        data = given.pop("data")
        result.update(changed=False, nodeprep={**data, "phase": given})
        return result
