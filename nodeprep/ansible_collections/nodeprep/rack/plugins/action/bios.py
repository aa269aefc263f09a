# SPDX-License-Identifier: Apache-2.0
"""Sets the BIOS of a machine through its BMC; documented in plugins/modules/bios.py."""

from __future__ import annotations

import os
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

_SPEC = {
    "bmc": {"type": "str", "required": True},
    "user": {"type": "str", "default": "admin"},
    "password": {"type": "str", "no_log": True},
    "password_file": {"type": "path"},
    "ca": {"type": "path"},
    "fingerprint": {"type": "str"},
    "insecure": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "restored"], "default": "present"},
    "knobs": {"type": "dict", "default": {}},
    "unsupported": {"type": "str", "choices": ["error", "accept"], "default": "error"},
    "reset": {"type": "bool", "default": True},
    "deadline_s": {"type": "float", "default": 1800.0},
    "graceful_s": {"type": "float", "default": 180.0},
    "bios_password": {"type": "str", "no_log": True},
    "home": {"type": "path"},
}


class ActionModule(ActionBase):
    """Speaks Redfish from the controller; nothing runs on the node, and nothing has to be installed there."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp=None, task_vars=None):
        """Plans in check mode, else applies and reads back."""
        result = super().run(tmp, task_vars)
        _checked, given = self.validate_argument_spec(argument_spec=_SPEC)
        if given["state"] == "present" and not given["knobs"]:
            raise AnsibleActionFail("no knob is given (hint: for example knobs: {iommu: disabled})")
        outcome, document = _work(given, self._task.check_mode)
        result.update(changed=outcome.changed, nodeprep={"bios": document})
        if outcome.message:
            result["msg"] = outcome.message
        if outcome.hint:
            result["hint"] = outcome.hint
        if outcome.failed:
            result["failed"] = True
        if self._task.diff and outcome.changed:
            result["diff"] = {
                "before_header": "BIOS of %s" % given["bmc"],
                "after_header": "BIOS of %s" % given["bmc"],
                "before": "".join("%s\n" % line for line in outcome.before),
                "after": "".join("%s\n" % line for line in outcome.after),
            }
        return result


def _work(given, check):
    try:
        from nodeprep.bmc.password import ENVIRONMENT  # noqa: PLC0415 - a missing package is told in words
        from nodeprep.bmc.redfish.connection import Connection  # noqa: PLC0415
        from nodeprep.bmc.target_url import redfish_target  # noqa: PLC0415
        from nodeprep.errors import NodeprepError  # noqa: PLC0415
        from nodeprep.model.codec import to_builtins  # noqa: PLC0415
        from nodeprep.workflows import bios_task, bios_work  # noqa: PLC0415
        from nodeprep.workflows.home import Home  # noqa: PLC0415
    except ImportError as error:
        raise AnsibleActionFail(
            "the Python that runs ansible-playbook has no nodeprep (%s): install it there, "
            "it is what speaks to BMCs" % error
        ) from error
    try:
        target = redfish_target(
            given["bmc"],
            given["user"],
            # What the task says comes before what the controller's environment has.
            {ENVIRONMENT: given["password"]} if given["password"] else os.environ,
            password_file=Path(given["password_file"]) if given["password_file"] else None,
            ca=Path(given["ca"]) if given["ca"] else None,
            fingerprint=given["fingerprint"] or "",
            insecure=given["insecure"],
        )
        asked = bios_work.Asked(
            target,
            reset=given["reset"],
            deadline_s=given["deadline_s"],
            graceful_s=given["graceful_s"],
            bios_password=given["bios_password"] or "",
        )
        home = Home(Path(given["home"])) if given["home"] else Home.from_environment()
        if given["state"] == "restored":
            work = bios_task.would_restore if check else bios_task.restore
            outcome = work(asked, home, Connection)
        else:
            wanted = bios_task.settings_of(given["knobs"])
            if check:
                outcome = bios_task.would_set(asked, wanted, given["unsupported"], Connection)
            else:
                outcome = bios_task.set_knobs(asked, wanted, given["unsupported"], home, Connection)
    except NodeprepError as error:
        raise AnsibleActionFail(bios_task.words_of(error)) from error
    return outcome, None if outcome.document is None else to_builtins(outcome.document)
