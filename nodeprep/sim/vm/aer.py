"""Names of PCIe errors: the kernel's, and QEMU's for the same."""

from __future__ import annotations

# Sources: aer_correctable_error_string and aer_uncorrectable_error_string in Linux's drivers/pci/pcie/aer.c,
# pcie_aer_error_list in QEMU's hw/pci/pcie_aer.c.
_QEMU = {
    "RxErr": "RCVR",
    "BadTLP": "BAD_TLP",
    "BadDLLP": "BAD_DLLP",
    "Rollover": "REP_ROLL",
    "Timeout": "REP_TIMER",
    "NonFatalErr": "ADV_NONFATAL",
    "CorrIntErr": "CINTERN",
    "HeaderOF": "HL_OVERFLOW",
    "DLP": "DLP",
    "SDES": "SDN",
    "TLP": "POISON_TLP",
    "FCP": "FCP",
    "CmpltTO": "COMP_TIME",
    "CmpltAbrt": "COMP_ABORT",
    "UnxCmplt": "UNX_COMP",
    "RxOF": "RX_OVER",
    "MalfTLP": "MALF_TLP",
    "ECRC": "ECRC",
    "UnsupReq": "UNSUP",
    "ACSViol": "ACSV",
    "UncorrIntErr": "INTN",
}


def qemu_name(error: str) -> str:
    """QEMU's name of an error; what is no name of the kernel's is taken for QEMU's own."""
    return _QEMU.get(error, error)
