"""Racks of virtual machines for the tests that need real kernels."""

from collections.abc import Iterator

import pytest

from nodeprep.sim.vm import Hardware, Rack, make_rack


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """Two machines that have just booted: node1 plain, node2 with a cloud image's GRUB drop-in."""
    folder = tmp_path_factory.mktemp("rack")
    made = make_rack(folder, [Hardware(), Hardware(cloud=True)], print)
    try:
        made.start(print)
        made.wait(print)
        yield made
    finally:
        made.down()
