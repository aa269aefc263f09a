"""A simulated node's boot loader and disks: GRUB as Ubuntu sets it up, on a plain disk.

Read only: nothing boots a folder, and the node code refuses to write a boot loader below another root.
"""

from __future__ import annotations

from nodeprep.sim.description import NodeDescription

DISK = "nvme0n1"
DISK_DEVICE_NUMBER = "259:2"
_GRUBENV_BYTES = 1024

# The parts of Ubuntu's grub.cfg that choose an entry; the generated file is longer.
# Source: /etc/grub.d/00_header, 10_linux and 41_custom of Ubuntu's grub-common 2.12.
_GRUB_CFG = """\
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${{next_entry}}" ] ; then
   set default="${{next_entry}}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
menuentry 'Ubuntu' --class ubuntu --class os $menuentry_id_option 'gnulinux-simple' {{
  linux {kernel} {arguments}
  initrd /initrd.img-{release}
}}
if [ -f  ${{config_directory}}/custom.cfg ]; then
  source ${{config_directory}}/custom.cfg
elif [ -z "${{config_directory}}" -a -f  $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
"""


def boot_files(node: NodeDescription) -> dict[str, str]:
    """Files by path: what a plain boot would do, and where GRUB's environment lies."""
    kernel, _, arguments = node.cmdline.removeprefix("BOOT_IMAGE=").partition(" ")
    environment = "# GRUB Environment Block\n"
    return {
        "/usr/sbin/update-grub": "",
        "/boot/grub/grub.cfg": _GRUB_CFG.format(
            kernel=kernel, arguments=arguments, release=node.kernel_release
        ),
        "/boot/grub/grubenv": environment + "#" * (_GRUBENV_BYTES - len(environment)),
        "/proc/self/mountinfo": f"26 1 {DISK_DEVICE_NUMBER} / / rw shared:1 - ext4 /dev/{DISK}p2 rw\n",
        "/sys/kernel/security/lockdown": "[none] integrity confidentiality\n",
    }
