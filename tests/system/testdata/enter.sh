#!/bin/sh
# enter.sh ROOT COMMAND...: runs a command in a Debian root as the first process of namespaces of its own. To be
# called by "unshare -m -p -f": what it mounts and starts is gone with it.
set -e
root=$1
shift
mount --make-rprivate /
mount --bind "$root" "$root" # pivot_root asks for a mount point, and so does unshare -m in there
mount -t proc proc "$root/proc"
mount --bind /sys "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for node in null:1:3:666 zero:1:5:666 full:1:7:666 random:1:8:666 urandom:1:9:666 tty:5:0:666; do
	name=${node%%:*} numbers=${node#*:}
	mknod -m "${numbers##*:}" "$root/dev/$name" c "${numbers%%:*}" "$(echo "$numbers" | cut -d: -f2)"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for i in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${i%:*}" "$root/dev/${i#*:}"; done
mount -t tmpfs -o mode=755 run "$root/run"
mkdir -m 1777 "$root/run/lock"
hostname root
cd "$root"
pivot_root . . # after a chroot no user namespace could be made
umount -l .
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root USER=root LC_ALL=C.UTF-8 TZ=UTC \
	DEBIAN_FRONTEND=noninteractive chroot . "$@"
