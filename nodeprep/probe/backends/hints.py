"""What to do when a library is missing; here because the parent says it without importing one."""

from __future__ import annotations

TORCH_HINT = (
    "name a Python on the node that has torch in nodeprep_policy.probe_python, "
    "or let the role probe_runtime make one"
)
NUMPY_HINT = "the simulated rack needs numpy: pip install 'nodeprep[sim]'"
