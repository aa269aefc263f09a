"""Hands settings to their writers: {"gpu_power": {...}} to gpu_power, and so on."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Sequence

from . import gpu_power, link_pin
from .power_unit import NODE_PYZ

DEADLINE_S = 60.0
Result = Dict[str, Any]


def apply(
    root: str,
    settings: Mapping[str, Mapping[str, Any]],
    *,
    check_mode: bool = False,
    deadline_s: float = DEADLINE_S,
    node_pyz: Optional[str] = NODE_PYZ,
) -> Result:
    """Applies each group of settings in turn; a group that fails ends it.

    Args:
        root: "/" or a simulated root.
        settings: Group to its arguments. gpu_power: limit and persistence as `gpu_power.apply` takes
            them, and state ("present", "absent" undoes). pcie_link: gen, gpus and live as
            `link_pin.apply` takes them, and state.
        check_mode: Only say what would change.
        deadline_s: Seconds for each group.
        node_pyz: The node program, for units that call it at boot.

    Returns:
        changed, failed, msg, hint, diff (list of before and after), results (group to its own result).
    """
    total: Result = {"changed": False, "failed": False, "msg": "", "hint": "", "diff": [], "results": {}}
    unknown = sorted(set(settings) - set(WRITERS))
    if unknown:
        known = ", ".join(sorted(WRITERS))
        return {
            **total,
            "failed": True,
            "msg": f"no such settings: {', '.join(unknown)}",
            "hint": f"there are: {known}",
        }
    for group, arguments in settings.items():
        try:
            result = WRITERS[group](
                root, check_mode=check_mode, deadline_s=deadline_s, node_pyz=node_pyz, **arguments
            )
        except TypeError as error:
            result = {"failed": True, "msg": f"{group}: {error}"}
        total["results"][group] = result
        total["changed"] = total["changed"] or bool(result.get("changed"))
        total["diff"].extend([result["diff"]] if any(result.get("diff", {}).values()) else [])
        if result["failed"]:
            return {
                **total,
                "failed": True,
                "msg": f"{group}: {result['msg']}",
                "hint": result.get("hint", ""),
            }
    return total


def _gpu_power(
    root: str,
    *,
    limit: Optional[str] = None,
    persistence: Optional[bool] = None,
    state: str = "present",
    check_mode: bool,
    deadline_s: float,
    node_pyz: Optional[str],
) -> Result:
    if state == "absent":
        return gpu_power.forget(root, check_mode=check_mode, deadline_s=deadline_s)
    return gpu_power.apply(
        root,
        limit=limit,
        persistence=persistence,
        check_mode=check_mode,
        deadline_s=deadline_s,
        node_pyz=node_pyz,
    )


def _pcie_link(
    root: str,
    *,
    gen: Optional[int] = None,
    gpus: Optional[Sequence[str]] = None,
    live: bool = False,
    state: str = "present",
    check_mode: bool,
    deadline_s: float,
    node_pyz: Optional[str],
) -> Result:
    if state == "absent":
        return link_pin.forget(root, live=live, check_mode=check_mode)
    if gen is None:
        return {"failed": True, "msg": "no generation was given", "hint": "gen: 4"}
    return link_pin.apply(
        root,
        gen=gen,
        gpus=tuple(gpus or ()),
        live=live,
        check_mode=check_mode,
        deadline_s=deadline_s,
        node_pyz=node_pyz,
    )


WRITERS: Dict[str, Callable[..., Result]] = {"gpu_power": _gpu_power, "pcie_link": _pcie_link}
