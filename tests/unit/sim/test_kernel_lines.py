"""The lines are worded as the kernel and the driver word them."""

from __future__ import annotations

from nodeprep.sim import kernel_lines


def test_a_correctable_error_report_reads_as_linux_6_8_prints_it() -> None:
    lines = kernel_lines.aer_correctable(
        root_port="0000:14:01.0",
        reporter="0000:16:00.0",
        reporter_id="1000:c030",
        driver="pcieport",
        error=kernel_lines.TIMEOUT,
        multiple=True,
    )
    assert [line.text for line in lines] == [
        "pcieport 0000:14:01.0: AER: Multiple Correctable error message received from 0000:16:00.0",
        "pcieport 0000:16:00.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)",
        "pcieport 0000:16:00.0:   device [1000:c030] error status/mask=00001000/0000a000",
        "pcieport 0000:16:00.0:    [12] Timeout               ",
    ]


def test_receiver_errors_are_marked_first() -> None:
    lines = kernel_lines.aer_correctable(
        root_port="0000:14:01.0",
        reporter="0000:17:00.0",
        reporter_id="10de:2330",
        driver="nvidia",
        error=kernel_lines.RX_ERR,
    )
    assert lines[0].text.startswith("pcieport 0000:14:01.0: AER: Correctable error message")
    assert lines[-1].text == "nvidia 0000:17:00.0:    [ 0] RxErr                  (First)"


def test_an_xid_line_names_no_function() -> None:
    line = kernel_lines.xid("0000:17:00.0", 79, "GPU has fallen off the bus.")
    assert line.text == "NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus."
    assert line.priority == kernel_lines.KERN_ERR


def test_falling_off_the_bus_names_the_gpu_before_the_xid() -> None:
    texts = [line.text for line in kernel_lines.fallen_off_the_bus("0000:17:00.0", "GPU-1", "165")]
    assert texts[0] == "NVRM: GPU at PCI:0000:17:00: GPU-1"
    assert next(i for i, text in enumerate(texts) if ": 79, " in text) == 2
