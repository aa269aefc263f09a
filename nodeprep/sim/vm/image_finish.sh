#!/bin/sh
# Runs inside the tree of the image, by chroot: everything a first boot would otherwise have to do.
# Environment: UUID (of the root file system), DISK_ID (of the partition table, 8 hex digits).
set -eu
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin

useradd --create-home --shell /bin/bash sre
chmod 0440 /etc/sudoers.d/sre
install -d -m 0700 /root/.ssh
install -d -m 0700 -o sre -g sre /home/sre/.ssh
rm -f /etc/ssh/ssh_host_*
: > /etc/machine-id
install -d -m 2755 /var/log/journal
echo "UUID=$UUID / ext4 defaults,errors=remount-ro 0 1" > /etc/fstab

systemctl -q enable systemd-networkd.service ssh.service serial-getty@ttyS0.service vm-identity.service
# Services of which no test learns anything; starting a process is slow here.
systemctl -q mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer e2scrub_all.timer \
  e2scrub_reap.service systemd-networkd-wait-online.service systemd-timesyncd.service getty@tty1.service \
  systemd-pstore.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount systemd-network-generator.service \
  systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-pcrphase.service \
  systemd-pcrphase-sysinit.service modprobe@drm.service modprobe@dm_mod.service modprobe@fuse.service \
  modprobe@loop.service sys-fs-fuse-connections.mount dev-hugepages.mount sys-kernel-tracing.mount

update-initramfs -u -k all

# GRUB, as grub-install leaves it. boot.img and core.img go in front of the partition when the disk is made.
install -d /boot/grub/i386-pc
cp /usr/lib/grub/i386-pc/*.mod /usr/lib/grub/i386-pc/*.lst /boot/grub/i386-pc/
printf 'search --no-floppy --fs-uuid --set=root %s\nset prefix=($root)/boot/grub\n' "$UUID" > /tmp/early.cfg
grub-mkimage -O i386-pc -d /usr/lib/grub/i386-pc -c /tmp/early.cfg -p /boot/grub -o /boot/grub/i386-pc/core.img \
  biosdisk part_msdos ext2 search search_fs_uuid normal configfile
cp /usr/lib/grub/i386-pc/boot.img /boot/grub/i386-pc/
rm /tmp/early.cfg
grub-editenv /boot/grub/grubenv create

# update-grub asks grub-probe about the disk, which does not exist yet: this one answers what the real
# one says in the running machine. A test of the rack compares both grub.cfg.
dpkg-divert --quiet --local --rename --add /usr/sbin/grub-probe
cat > /usr/sbin/grub-probe <<PROBE
#!/bin/sh
for word in "\$@"; do
  case "\$word" in
    --target=*) target="\${word#--target=}" ;;
    -t) : ;;
    device|fs|fs_uuid|partuuid|partmap|abstraction|drive|compatibility_hint|hints_string) target="\$word" ;;
  esac
done
case "\$target" in
  device) echo /dev/vda1 ;;
  fs) echo ext2 ;;
  fs_uuid) echo $UUID ;;
  partuuid) echo $DISK_ID-01 ;;
  partmap) echo msdos ;;
  drive) echo "(hostdisk//dev/vda,msdos1)" ;;
  compatibility_hint|hints_string) : ;;  # the real one warns: unknown device type vda
esac
PROBE
chmod 0755 /usr/sbin/grub-probe
mkdir -p /dev/disk/by-uuid /dev/disk/by-partuuid
: > "/dev/disk/by-uuid/$UUID"
: > "/dev/disk/by-partuuid/$DISK_ID-01"
grub-mkconfig -o /boot/grub/grub.cfg
# The same with a cloud image's drop-in, for machines that have one.
mkdir -p /etc/default/grub.d
cp /50-cloudimg-settings.cfg /etc/default/grub.d/
grub-mkconfig -o /grub-cloud.cfg
rm /etc/default/grub.d/50-cloudimg-settings.cfg
rm /usr/sbin/grub-probe
dpkg-divert --quiet --local --rename --remove /usr/sbin/grub-probe
rm -rf /dev/disk
apt-get clean
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/log/*.log
