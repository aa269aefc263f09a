"""One NVML call to one reading: value, not supported, or error with NVML's words and code."""

from __future__ import annotations

from typing import Any, Callable, Protocol, Sequence

from . import reading
from .reading import Reading

# Entry points that a driver may lack without hiding a fault, and why that is so. Any other entry
# point that is missing is an error: "this driver cannot say" is not "the part has no such thing".
OLDER_DRIVERS_LACK = {
    "nvmlDeviceGetGspFirmwareMode": "a driver without it runs no GSP firmware",
    "nvmlDeviceGetGspFirmwareVersion": "a driver without it runs no GSP firmware",
    "nvmlDeviceGetMarginTemperature": "the same driver still gives absolute thresholds",
    "nvmlDeviceGetSramEccErrorStatus": "the uncorrected totals count the same errors",
    "nvmlDeviceGetRepairStatus": "that driver announces a repair as a pending row remap",
    "nvmlDeviceGetGpuFabricInfo": "a driver without it knows no GPU that registers with a fabric",
    "nvmlDeviceGetMigMode": "a driver without it knows no GPU with MIG",
    "nvmlDeviceGetRowRemapperHistogram": "failure and pending flags come from nvmlDeviceGetRemappedRows",
}

# Field numbers an older driver may not know (it answers INVALID_ARGUMENT for the single field).
# 94, 95 and 82 are older than any driver in use: for them the answer stays an error.
OLDER_DRIVERS_LACK_FIELDS = frozenset(
    [142, 143, 144, 145, 161, 162, 163, 169, *range(173, 184), 185, 186, *range(187, 199), 230]
)

ADVICE = {
    4: "root rights are needed",
    9: "the NVIDIA kernel module is not loaded",
    12: "no NVIDIA driver installed?",
    13: "this driver has no such function",
    15: "the GPU has fallen off the bus",
    16: "the GPU must be reset",
    18: "the driver was upgraded but not reloaded: reboot",
}


class Marks(Protocol):
    """Whoever wants to know which call is being made."""

    def mark(self, call: str, subject: str = "") -> None:
        """Takes note of a call that is about to be made."""


class Calls:
    """Calls NVML on behalf of one subject and announces every call first.

    Args:
        pynvml: The bound nvidia-ml-py.
        marks: Where markers go.
        subject: What the calls are about, for markers: a PCI address, "GPU index 3" or "".
    """

    def __init__(self, pynvml: Any, marks: Marks, subject: str = "") -> None:
        self.pynvml = pynvml
        self.subject = subject
        # What NVML said when it first answered "GPU is lost", "" as long as it has not.
        self.lost = ""
        self._marks = marks

    def call(self, function: str, *args: Any) -> Any:
        """The plain call.

        Raises:
            pynvml.NVMLError: What NVML answered.
        """
        self._marks.mark(function, self.subject)
        return getattr(self.pynvml, function)(*args)

    def read(self, function: str, *args: Any, value: Callable[[Any], Any] | None = None) -> Reading:
        """The call as a reading; `value` turns what came back into the reading's value."""
        try:
            got = self.call(function, *args)
            return reading.ok(_plain(got) if value is None else value(got))
        except Exception as error:  # whatever it is becomes an error reading: nothing may pass for a value
            return self.failed(function, error)

    def failed(self, function: str, error: Exception) -> Reading:
        """What an exception of a call means."""
        code = error_code(self.pynvml, error)
        if code == self.pynvml.NVML_ERROR_GPU_IS_LOST and not self.lost:
            self.lost = describe(self.pynvml, function, error)
        if code == self.pynvml.NVML_ERROR_NOT_SUPPORTED:
            return reading.not_supported(f"{function}: Not Supported")
        if code == self.pynvml.NVML_ERROR_FUNCTION_NOT_FOUND and function in OLDER_DRIVERS_LACK:
            why = OLDER_DRIVERS_LACK[function]
            return reading.not_supported(f"{function}: this driver has no such function; {why}")
        return reading.error(describe(self.pynvml, function, error))

    def is_code(self, error: Exception, *names: str) -> bool:
        """True when the exception carries one of the named NVML codes ("NOT_SUPPORTED")."""
        code = error_code(self.pynvml, error)
        return any(code == getattr(self.pynvml, "NVML_ERROR_" + name) for name in names)


def error_code(pynvml: Any, error: Exception) -> int | None:
    """The NVML return code of an exception, None for an exception of another kind."""
    if isinstance(error, pynvml.NVMLError):
        return int(error.value)
    if isinstance(error, pynvml.NVMLLibraryMismatchError):
        return int(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
    return None


def describe(pynvml: Any, function: str, error: Exception) -> str:
    """For example "nvmlDeviceGetPowerUsage: GPU is lost (NVML error 15): the GPU has fallen off the bus"."""
    code = error_code(pynvml, error)
    if code is None:
        return f"{function}: {type(error).__name__}: {error}"
    advice = ADVICE.get(code, "")
    return f"{function}: {error} (NVML error {code})" + (f": {advice}" if advice else "")


def _plain(got: Any) -> Any:
    # The binding leaves nvmlDeviceGetGspFirmwareVersion as bytes.
    return got.decode() if isinstance(got, bytes) else got


def then(given: Reading, value: Callable[[Any], Any]) -> Reading:
    """The reading with its value put through `value`; other states stay what they are."""
    return reading.ok(value(given["value"])) if given["state"] == "ok" else given


def milliwatts(value: int) -> float:
    """Watts from NVML's milliwatts."""
    return value / 1000.0


def pci_address(bus_id: str) -> str:
    """NVML's "00000000:17:00.0" as "0000:17:00.0".

    Raises:
        ValueError: It is not a PCI address.
    """
    domain, bus, rest = bus_id.strip().split(":")
    device, function = rest.split(".")
    return f"{int(domain, 16):04x}:{int(bus, 16):02x}:{int(device, 16):02x}.{int(function, 16):x}"


_MEMBER = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}


def field_value(item: Any) -> int | float:
    """The member of the value union that `valueType` names.

    Raises:
        ValueError: A type this binding does not know.
    """
    if item.valueType not in _MEMBER:
        raise ValueError(f"NVML field {item.fieldId} has unknown value type {item.valueType}")
    value: int | float = getattr(item.value, _MEMBER[item.valueType])
    return value


def read_fields(calls: Calls, handle: Any, fields: Sequence[int], scope: int = 0) -> dict[int, Reading]:
    """Field values as readings by field number. `scope` is the link for NVLink fields, else 0.

    The call as a whole succeeds even when single fields fail: each has its own return code.
    """
    function = "nvmlDeviceGetFieldValues"
    try:
        items = calls.call(function, handle, [(field, scope) for field in fields])
    except Exception as error:  # becomes the reading of each field
        return dict.fromkeys(fields, calls.failed(function, error))
    return {int(item.fieldId): _field_reading(calls, item) for item in items}


def _field_reading(calls: Calls, item: Any) -> Reading:
    pynvml = calls.pynvml
    name = f"NVML field {item.fieldId}"
    if item.nvmlReturn != pynvml.NVML_SUCCESS:
        unknown = item.nvmlReturn == pynvml.NVML_ERROR_INVALID_ARGUMENT
        if unknown and item.fieldId in OLDER_DRIVERS_LACK_FIELDS:
            return reading.not_supported(f"{name}: not known to this driver")
        return calls.failed(name, pynvml.NVMLError(item.nvmlReturn))
    try:
        return reading.ok(field_value(item))
    except ValueError as error:
        return reading.error(str(error))
