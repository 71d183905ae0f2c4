#!/usr/bin/env bash
# Boots a small virtual machine with several memory nodes, runs a shell script in it, and
# ends as the script does.
#
#   vm.sh [OPTION...] [FILE[=PATH]...] <SCRIPT
#
# The script comes from standard input, for busybox's sh; it runs as root in the folder
# /guest of the guest. What it prints, errors included, is this command's output. What it
# leaves under /out comes back (see -o). FILE is put into /guest, or at PATH, and so are
# the shared libraries that it needs, where they are here.
#
#   -n NODES    the machine: SIZE/CPUS[/NS/MBS] for each node, separated by blanks. SIZE is
#               in MiB; NS and MBS are the latency and the bandwidth that the firmware's
#               table (ACPI HMAT) states, which slows nothing down. A node without CPUs is
#               what memory behind CXL looks like. Default: a fast, an ordinary and a slow
#               one, "512/2/100/50000 512/0/200/25000 512/0/400/6000".
#   -a WORDS    more arguments for QEMU, separated by blanks, which then interprets the
#               guest (TCG) whatever the machine can do
#   -o FOLDER   where to put what the guest leaves under /out
#   -p WORDS    more kernel parameters
#   -t SECONDS  the longest that the machine may live; without it, as long as it takes
#   -v          print the guest's console on standard error at the end
#
# Exit status: the script's; 122 wrong use; 123 something that is needed is missing; 124
# the time is up; 125 the machine ended before the script did. For these four a line on
# standard error begins with "vm.sh:".
#
# Needs Debian's qemu-system-x86, busybox-static and cpio. The kernel is Debian's for
# clouds, 6.12, from its archive by apt-get; it is kept in ~/.cache/tieralloc. TA_VM_KERNEL
# names another one.
set -euo pipefail

say() { printf 'vm.sh: %s\n' "$*" >&2; }
fail() { # STATUS WORD...
	say "${@:2}"
	exit "$1"
}

machine="512/2/100/50000 512/0/200/25000 512/0/400/6000"
out='' words='' limit=0 console='' more=()
while getopts a:n:o:p:t:v option; do
	case $option in
	a) read -ra more <<<"$OPTARG" ;;
	n) machine=$OPTARG ;;
	o) out=$OPTARG ;;
	p) words=$OPTARG ;;
	t) limit=$OPTARG ;;
	v) console=yes ;;
	*)
		say "usage: $0 [-a WORDS] [-n NODES] [-o FOLDER] [-p WORDS] [-t SECONDS] [-v] [FILE[=PATH]...] <SCRIPT"
		exit 122
		;;
	esac
done
shift $((OPTIND - 1))

for pair in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio ldd:libc-bin; do
	command -v "${pair%:*}" >/dev/null || fail 123 "missing: ${pair%:*} (Debian package ${pair#*:})"
done

tmp=$(mktemp -d "${TMPDIR:-/tmp}/vm.XXXXXX")
# shellcheck disable=SC2317 # called by the trap
tidy() {
	local guest
	guest=$(jobs -p) # not a variable set from $!, before which a signal may come
	[[ -z $guest ]] || kill "$guest" 2>/dev/null || true
	rm -rf -- "$tmp"
}
trap tidy EXIT
# The kernel sends a parent's death to its children once for each of its threads that ends: the
# second time is not to end tidy.
trap 'trap "" HUP INT TERM; exit 125' HUP INT TERM

# Prints the path of the kernel, which is fetched unless it has been before. Weighted
# interleaving came with Linux 6.9, memory tiers by HMAT with 6.11.
kernel() {
	local cache=${XDG_CACHE_HOME:-$HOME/.cache}/tieralloc package deb
	if [[ -n ${TA_VM_KERNEL-} ]]; then
		printf '%s\n' "$TA_VM_KERNEL"
		return
	fi
	mkdir -p "$cache"
	if [[ ! -s $cache/vmlinuz ]]; then
		package=$(kernel_package)
		[[ -n $package ]] || { [[ $(id -u) == 0 ]] && apt-get update -q >&2 && package=$(kernel_package); } ||
			fail 123 "apt-get has no linux-image-6.12-cloud-amd64: name a kernel in TA_VM_KERNEL"
		mkdir "$tmp/kernel"
		(cd "$tmp/kernel" && apt-get -o APT::Sandbox::User=root download -q "$package" >&2) || fail 123 "cannot fetch $package"
		deb=$(compgen -G "$tmp/kernel/*.deb")
		dpkg-deb --fsys-tarfile "$deb" | tar -xO --wildcards './boot/vmlinuz-*' >"$tmp/kernel/vmlinuz" ||
			fail 123 "$package has no kernel in it"
		# Another one that does the same at once has the same kernel.
		cp "$tmp/kernel/vmlinuz" "$cache/vmlinuz.$$" && mv "$cache/vmlinuz.$$" "$cache/vmlinuz"
	fi
	printf '%s\n' "$cache/vmlinuz"
}

# The package that is behind the name for "the latest kernel".
kernel_package() {
	local name
	for name in linux-image-6.12-cloud-amd64 linux-image-cloud-amd64; do
		apt-cache depends "$name" 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-image-6[.]1[2-9]/ { print $2; exit }'
	done | head -n 1
}

# Sets qemu_nodes to QEMU's words for the nodes. An initiator is a node that accesses
# memory: each node with CPUs.
nodes() {
	local spec size cpus ns mbs total=0 smp=0 node=0 other from
	local -a all with=() figures=() sizes=()
	read -ra all <<<"$machine"
	qemu_nodes=()
	for spec in "${all[@]}"; do
		[[ $spec =~ ^[0-9]+/[0-9]+(/[0-9]+/[0-9]+)?$ ]] || fail 122 "a node is SIZE/CPUS[/NS/MBS], not $spec"
		IFS=/ read -r size cpus ns mbs <<<"$spec//"
		mbs=${mbs%%/*}
		sizes+=("$size:$cpus")
		figures+=("${ns:-0}:${mbs:-0}")
		((cpus == 0)) || with+=("$node")
		total=$((total + size)) smp=$((smp + cpus)) node=$((node + 1))
	done
	((smp > 0)) || fail 122 "no node has CPUs"
	local hmat=on cpu=0
	[[ ${figures[0]} != 0:* ]] || hmat=off
	qemu_nodes=(-machine "q35,hmat=$hmat" -m "${total}M" -smp "$smp,sockets=$smp,cores=1,threads=1")
	for node in "${!sizes[@]}"; do
		IFS=: read -r size cpus <<<"${sizes[node]}"
		from=${with[0]}
		((cpus == 0)) || from=$node
		[[ $hmat == off ]] || from=,initiator=$from
		[[ $hmat == on ]] || from=''
		qemu_nodes+=(-object "memory-backend-ram,id=m$node,size=${size}M" -numa "node,nodeid=$node,memdev=m$node$from")
		for ((; cpus > 0; cpus--)); do
			qemu_nodes+=(-numa "cpu,node-id=$node,socket-id=$cpu")
			cpu=$((cpu + 1))
		done
	done
	for node in "${!sizes[@]}"; do
		for other in "${!sizes[@]}"; do
			((node == other)) || qemu_nodes+=(-numa "dist,src=$node,dst=$other,val=$(distance "${sizes[node]}" "${sizes[other]}")")
		done
		[[ $hmat == on && ${sizes[node]} != *:0 ]] || continue
		for other in "${!sizes[@]}"; do
			IFS=: read -r ns mbs <<<"${figures[other]}"
			((node == other)) || [[ ${sizes[other]} == *:0 ]] || ns=$((ns + ns / 2)) # another socket's
			qemu_nodes+=(-numa "hmat-lb,initiator=$node,target=$other,hierarchy=memory,data-type=access-latency,latency=$ns"
				-numa "hmat-lb,initiator=$node,target=$other,hierarchy=memory,data-type=access-bandwidth,bandwidth=${mbs}M")
		done
	done
}

# The distance of two nodes, each SIZE:CPUS.
distance() {
	if [[ $1 == *:0 || $2 == *:0 ]]; then echo 30; else echo 21; fi
}

# Puts a file into the guest at a path, and the libraries that it loads where they are
# here.
bring() {
	local library
	mkdir -p "$tmp/root${2%/*}"
	cp -L -- "$1" "$tmp/root$2" || fail 122 "cannot copy $1"
	while read -r library; do
		[[ -e $tmp/root$library ]] || { mkdir -p "$tmp/root${library%/*}" && cp -L -- "$library" "$tmp/root$library"; }
	done < <(ldd "$1" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }')
}

# Makes the guest's root file system.
root() {
	local file path
	mkdir -p "$tmp/root"/{bin,dev,etc,proc,sys,tmp,guest,out}
	bring "$(command -v busybox)" /bin/busybox
	cat >"$tmp/root/guest/.script"
	for file in "$@"; do
		path=/guest/${file##*/}
		[[ $file != *=* ]] || path=${file#*=}
		bring "${file%%=*}" "$path"
	done
	cat >"$tmp/root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t tmpfs tmp /tmp
mkdir /dev/shm
mount -t tmpfs shm /dev/shm
echo 'root:x:0:0::/guest:/bin/sh' >/etc/passwd
stty -F /dev/ttyS1 raw -echo
stty -F /dev/ttyS2 raw -echo
cd /guest
echo 'vm.sh: the script begins' >/dev/ttyS0
HOME=/guest PATH=/bin setsid sh .script </dev/null >/dev/ttyS1 2>&1
echo $? >/out/.status
tar -c -f /dev/ttyS2 -C /out .
poweroff -f
INIT
	chmod 0755 "$tmp/root/init"
	(cd "$tmp/root" && find . -print0 | cpio -o -0 -H newc -R 0:0 --quiet >"$tmp/initrd")
}

# A kernel for bare machines does not boot under a /dev/kvm that the processor has no
# part in; TCG is QEMU's own interpreter.
accelerator=tcg
if [[ ${#more[@]} == 0 && -w /dev/kvm ]] && grep -qwE 'vmx|svm' /proc/cpuinfo; then accelerator=kvm; fi

image=$(kernel)
nodes
root "$@"
# The serial lines: console, output, archive. The output is QEMU's own. Where the processor is busy
# the guest may see no tick of its timer for so long that the kernel takes it for broken, and
# panics: no_timer_check.
boot() {
	timeout -k 2 "$limit" qemu-system-x86_64 -nodefaults -no-user-config -no-reboot -display none \
		-accel "$accelerator" -cpu max "${qemu_nodes[@]}" ${more[@]+"${more[@]}"} -kernel "$image" -initrd "$tmp/initrd" \
		-append "console=ttyS0 8250.nr_uarts=3 quiet no_timer_check panic=-1 oops=panic $words" \
		-serial "file:$tmp/console" -chardev stdio,id=output,signal=off -serial chardev:output \
		-serial "file:$tmp/archive" </dev/null &
	ended=0
	wait $! || ended=$?
}

boot
# QEMU's interpreter now and then ends while the kernel boots.
if ((ended != 124 && ended != 137)) && ! grep -q 'vm.sh: the script begins' "$tmp/console"; then
	say "the machine ended while it booted, and boots once more: $(tail -n 3 "$tmp/console")"
	boot
fi
[[ -z $console ]] || cat "$tmp/console" >&2
mkdir "$tmp/out"
tar -x -f "$tmp/archive" -C "$tmp/out" 2>/dev/null || true
if ((ended == 124 || ended == 137)); then
	say "the machine did not end within $limit s"
	exit 124
fi
[[ -s $tmp/out/.status ]] || fail 125 "the machine ended before the script did (-v shows its console)"
status=$(<"$tmp/out/.status")
rm "$tmp/out/.status"
if [[ -n $out ]]; then
	mkdir -p "$out"
	cp -r -- "$tmp/out/." "$out"
fi
exit "$status"
