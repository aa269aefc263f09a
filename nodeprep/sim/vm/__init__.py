"""The virtual rack: real kernels, boot loaders and BMCs, in virtual machines. A public tool.

`make_rack` makes one, `Rack` finds it again; each of its machines is a `Vm`.
"""

from nodeprep.sim.vm.hardware import Hardware, Slot
from nodeprep.sim.vm.rack import Rack, make_rack
from nodeprep.sim.vm.vm import Vm

__all__ = ["Hardware", "Rack", "Slot", "Vm", "make_rack"]
