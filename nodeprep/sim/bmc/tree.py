"""GET: the dump's resources, with what is alive in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from nodeprep.sim.bmc.dump import MARK, ROOT, as_json, is_registry, link_of, plain
from nodeprep.sim.bmc.host import allowed_types
from nodeprep.sim.bmc.jobs import Job
from nodeprep.sim.bmc.messages import JSON
from nodeprep.sim.bmc.state import State
from nodeprep.sim.bmc.wire import Response

TASKS = f"{ROOT}/TaskService/Tasks"
_GZIP = {**JSON, "Content-Encoding": "gzip"}


class Tree:
    """What GET finds.

    Attributes:
        bios, settings: Keys of those resources; None when there are none.
        sessions: Key of the collection of sessions.
        job_places: Keys of the collections of jobs; none on a BMC without jobs.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._dump = dump = state.dump
        tree = state.conduct.tree
        self.bios = dump.bios if tree.bios else None
        self.settings = state.settings_uri if tree.bios and tree.settings else None
        self.sessions = plain(
            link_of(dump.body(ROOT), "Links", "Sessions") or f"{ROOT}/SessionService/Sessions"
        )
        has_jobs = state.conduct.staging.apply_time == "job"
        manager = dump.manager or f"{ROOT}/Managers/1"
        self.job_places = (
            (f"{manager}/Oem/Dell/Jobs", f"{manager}/Jobs", f"{ROOT}/JobService/Jobs", TASKS)
            if has_jobs
            else ()
        )
        actions = dump.body(dump.system).get("Actions")
        reset = actions.get("#ComputerSystem.Reset") if isinstance(actions, dict) else None
        self._reset: dict[str, Any] = reset if isinstance(reset, dict) else {}
        info = self._reset.get("@Redfish.ActionInfo")
        self._reset_info = plain(info) if isinstance(info, str) else None
        self._made: dict[str, Callable[[], dict[str, Any] | None]] = {
            uri: make
            for uri, make in (
                (dump.system, self._system),
                (self._reset_info, self._info),
                (self.sessions if state.conduct.login.sessions else None, self._session_list),
                (self.bios, self._bios_body),
                (self.settings, self._settings_body),
            )
            if uri is not None
        }
        # In the case that clients ask for, when case does not matter.
        self._lower = {uri.lower(): uri for uri in (*self._made, *self.job_places)}

    def find(self, path: str) -> str | None:
        """The key of a path; None when there is no such resource."""
        any_case = self._state.conduct.tree.any_case
        bare = plain(path)
        for made in (bare, self._lower.get(bare.lower()) if any_case else None):
            if made in self._made or made in self.job_places:
                return made
        if bare.rsplit("/", 1)[0] in (*self.job_places, self.sessions):
            return bare
        uri = self._dump.find(path, any_case=any_case)
        return None if uri is None or self._hidden(uri) else uri

    def named(self, uri: str) -> str:
        """What a resource calls itself, where that differs from its key: HPE's end with a slash."""
        own = link_of(self._dump.body(uri))
        return own if plain(own).lower() == uri.lower() else uri

    def get(self, uri: str, *, compressed: bool) -> Response | None:
        """The answer to a GET.

        Args:
            uri: As find() gave it.
            compressed: The client takes gzip.
        """
        if uri in self._made:
            body = self._made[uri]()
            return None if body is None else self._answer(uri, body)
        parent, _, name = uri.rpartition("/")
        if uri in self.job_places:
            return self._answer(uri, self._list(uri, [job.id for job in self._state.jobs.all()]))
        if parent in self.job_places:
            job = self._state.jobs.get(name)
            return None if job is None else self._answer(uri, self.job(job, uri))
        if parent == self.sessions:
            session = self._state.sessions.by_id(name)
            return (
                None
                if session is None
                else self._answer(uri, session_body(self.sessions, name, session.user))
            )
        if is_registry(self._dump.resources[uri]) and (
            compressed or self._state.conduct.tree.gzip_registries
        ):
            return Response(200, _GZIP, self._dump.compressed(uri))
        etag = self._state.etag(uri)
        return Response(200, {**JSON, **({"ETag": etag} if etag else {})}, self._dump.encoded(uri))

    def expanded(self, answer: Response) -> Response:
        """A collection with its members in place of links to them, where the service says that it can."""
        features = self._dump.body(ROOT).get("ProtocolFeaturesSupported")
        able = features.get("ExpandQuery") if isinstance(features, dict) else None
        if not isinstance(able, dict) or not (able.get("ExpandAll") or able.get("NoLinks")):
            return answer
        body = {} if "Content-Encoding" in answer.headers else msgspec.json.decode(answer.body)
        members = body.get("Members")
        if not isinstance(members, list):
            return answer
        return Response(
            answer.status,
            answer.headers,
            as_json({**body, "Members": [self._member(link) for link in members]}),
        )

    def _member(self, link: Any) -> Any:
        uri = self.find(link_of(link)) if link_of(link) else None
        found = self.get(uri, compressed=False) if uri else None
        if found is None or "Content-Encoding" in found.headers:
            return link
        return msgspec.json.decode(found.body)

    def job(self, job: Job, uri: str) -> dict[str, Any]:
        """A job, as the place it is asked at shows it."""
        jobs = self._state.jobs
        return jobs.task(job, uri) if uri.startswith(TASKS) else jobs.body(job, uri)

    def resets(self) -> tuple[str, ...]:
        """Types of reset that this BMC takes."""
        listed = self._reset.get("ResetType@Redfish.AllowableValues")
        if not isinstance(listed, list) and self._reset_info:
            parameters = self._dump.body(self._dump.find(self._reset_info)).get("Parameters")
            for parameter in parameters if isinstance(parameters, list) else []:
                if isinstance(parameter, dict) and parameter.get("Name") == "ResetType":
                    listed = parameter.get("AllowableValues")
        return allowed_types(listed)

    def _hidden(self, uri: str) -> bool:
        tree, dump = self._state.conduct.tree, self._dump
        lower = uri.lower()
        if not tree.bios and dump.bios and lower.startswith(dump.bios.lower()):
            return True
        if not tree.settings and uri == self._state.settings_uri:
            return True
        if not self._state.conduct.login.sessions and "sessionservice" in lower:
            return True
        if not tree.registry and (is_registry(dump.resources[uri]) or "attributeregistry" in lower):
            return True
        # HPE's crawler wrote the same resource down twice; the live one is the only one.
        return uri not in (self.bios, self.settings) and lower in self._lower

    def _answer(self, uri: str, body: dict[str, Any]) -> Response:
        header = {}
        etag = self._state.etag(uri)
        if uri in (self.settings, self.bios):
            rules = self._state.etags
            etag, shown = rules.property(etag), rules.header(etag)
            body = {name: value for name, value in body.items() if name != "@odata.etag"}
            if etag:
                body["@odata.etag"] = etag
            if shown:
                header["ETag"] = shown
        elif etag:
            header["ETag"] = etag
        return Response(200, {**JSON, **header}, as_json(body))

    def _bios_body(self) -> dict[str, Any]:
        state = self._state
        body = dict(self._dump.body(self.bios))
        settings = body.get("@Redfish.Settings")
        if isinstance(settings, dict):
            settings = dict(settings)
            if not (state.conduct.tree.settings_object and state.conduct.tree.settings):
                settings.pop("SettingsObject", None)
            if state.conduct.staging.messages and state.settings.results is not None:
                settings["Messages"] = [message.to_dict() for message in state.settings.results]
                settings["Time"] = state.settings.results_time
            body["@Redfish.Settings"] = settings
        if not state.conduct.tree.registry:
            body.pop("AttributeRegistry", None)
        values: dict[str, Any] = dict(state.settings.current)
        if state.conduct.staging.early and state.host.in_post:
            values |= state.settings.waiting
        for name in list(values)[: state.conduct.tree.null_attributes]:
            values[name] = None
        body = self._dump.shape.write(body, values)
        if state.conduct.tree.attributes_list:
            body["Attributes"] = [{name: value} for name, value in values.items()]
        return body

    def _settings_body(self) -> dict[str, Any] | None:
        state, staging = self._state, self._state.conduct.staging
        waiting = state.settings.waiting
        if staging.absent_when_empty and not waiting:
            return None
        bios = self._dump.body(self.bios)
        body = dict(self._dump.body(self.settings)) or {
            "@odata.id": self.settings,
            "@odata.type": bios.get("@odata.type", "#Bios.v1_0_0.Bios"),
            "Id": (self.settings or "").rsplit("/", 1)[-1],
            "Name": "BIOS settings that wait for a reset",
            **({"AttributeRegistry": bios["AttributeRegistry"]} if "AttributeRegistry" in bios else {}),
        }
        if not state.conduct.tree.registry:
            body.pop("AttributeRegistry", None)
        shown = {**state.settings.current, **waiting} if self._dump.is_full else dict(waiting)
        body = self._dump.shape.write(body, shown)
        if staging.omits_empty and not shown:
            body.pop("Attributes", None)
        return body

    def _system(self) -> dict[str, Any]:
        state = self._state
        body = dict(self._dump.body(self._dump.system))
        body["PowerState"] = power = state.host.power
        posting = state.host.in_post
        if not state.conduct.tree.bios:
            body.pop("Bios", None)
        if not state.conduct.tree.reset_types:
            actions = dict(body.get("Actions", {}))
            actions["#ComputerSystem.Reset"] = {"target": self._reset.get("target")}
            body["Actions"] = actions
        if isinstance(body.get("BootProgress"), dict):
            last = "SystemHardwareInitializationComplete" if posting else "OSRunning"
            body["BootProgress"] = {**body["BootProgress"], "LastState": last if power == "On" else "None"}
        _show_post(body.get("Oem"), body, posting=posting, power=power)
        if state.serial:
            body["SerialNumber"] = state.serial
        return body

    def _info(self) -> dict[str, Any]:
        uri = self._dump.find(self._reset_info or "")
        return self._dump.body(uri) or {
            "@odata.id": self._reset_info,
            "@odata.type": "#ActionInfo.v1_1_1.ActionInfo",
            "Id": "ResetActionInfo",
            "Name": "Reset Action Info",
            "Parameters": [
                {
                    "Name": "ResetType",
                    "Required": True,
                    "DataType": "String",
                    "AllowableValues": list(self.resets()),
                }
            ],
            "Oem": MARK,
        }

    def _session_list(self) -> dict[str, Any]:
        return self._list(self.sessions, self._state.sessions.ids())

    def _list(self, uri: str, names: list[str]) -> dict[str, Any]:
        return {
            "@odata.id": uri,
            "@odata.type": "#Collection.Collection",
            "Name": uri.rsplit("/", 1)[-1],
            "Members": [{"@odata.id": f"{uri}/{name}"} for name in names],
            "Members@odata.count": len(names),
        }


def session_body(collection: str, name: str, user: str) -> dict[str, Any]:
    """A session as a resource."""
    return {
        "@odata.id": f"{collection}/{name}",
        "@odata.type": "#Session.v1_3_0.Session",
        "Id": name,
        "Name": "User Session",
        "UserName": user,
    }


def _show_post(oem: Any, body: dict[str, Any], *, posting: bool, power: str) -> None:
    """Say in the vendor's own words how far the host has come, where the dump has such words."""
    if not isinstance(oem, dict):
        return
    on = power != "Off"
    words = {
        ("Hpe", "PostState"): ("InPost" if posting else "FinishedPost") if on else "PowerOff",
        ("Lenovo", "SystemStatus"): ("SystemOnStartingUEFI" if posting else "OSBooted")
        if on
        else "SystemPowerOff",
    }
    for (vendor, key), word in words.items():
        own = oem.get(vendor)
        if isinstance(own, dict) and key in own:
            oem = {**oem, vendor: {**own, key: word}}
    body["Oem"] = oem
