#!/usr/bin/env bash
# Builds, runs, tests, measures and checks libtieralloc.so. See usage below.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
root=$(pwd -P) # where "run" starts its command
cd -- "$here"
lib=$here/build/libtieralloc.so

# The library's version. Programs that are linked with it ask for it by the soname, whose
# number changes when they would have to be linked anew.
version=$(sed -n 's/^const Number = "\(.*\)"$/\1/p' internal/version/version.go)
soname=libtieralloc.so.${version%%.*}

# The Go that is downloaded where there is none or an older one, with its checksum.
go_download=golang.org/toolchain@v0.0.1-go1.26.11.linux-amd64
go_checksum=h1:KyINmJ/FQdKRmDYGuTAAXkumyeR2DyUlSNHZj7XaLFg=

# The version is pinned so that a lint result depends on the source alone.
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2

# What packs the .deb and the .rpm. Go checks it against the checksum database. Later versions need
# modules for packages of Windows.
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2

usage() {
	cat >&2 <<'TEXT'
usage: ./build.sh build               build build/libtieralloc.so, its headers, build/tierallocctl, its manual
                                      and completions, and build/benchmark
       ./build.sh debug               build build/debug/libtieralloc.so, which checks the order of its locks
       ./build.sh run [--] CMD...     build if need be, then run CMD by build/tierallocctl run
       ./build.sh install [--prefix DIR] [--destdir DIR]
                                      build if need be, then install library, headers, pkg-config file, tool, manual
                                      and completions below DIR (/usr/local)
       ./build.sh uninstall [--prefix DIR] [--destdir DIR]
                                      remove what install has placed there
       ./build.sh package             build if need be, then make a .deb, an .rpm, a tarball and a Python wheel in build/packages
       ./build.sh test [GO TEST ARGS] build, then run all tests (or those named)
       ./build.sh bench [GO TEST ARGS] build, then run the benchmarks
       ./build.sh bench cpu [FLAGS]   build, then compare the heap with other allocators' (bench cpu --help)
       ./build.sh lint                check format (C where clang-format is installed), vet, staticcheck, shellcheck and the freestanding rules
As root on a Debian-like system, all but uninstall install the packages they lack, Go included.
TEXT
	exit 2
}

say() { printf 'build.sh: %s\n' "$*" >&2; }
die() {
	say "$@"
	exit 1
}

# Names the packages for the programs that are missing: each argument is
# PROGRAM:PACKAGE, where PROGRAM may be an absolute path or a pattern of one.
lacking() {
	local pair program
	for pair in "$@"; do
		program=${pair%:*}
		if [[ $program == /* ]]; then
			compgen -G "$program" >/dev/null || printf '%s\n' "$pair"
		else
			command -v "$program" >/dev/null || printf '%s\n' "$pair"
		fi
	done
}

# True where packages can be installed without asking.
can_install() { [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; }

# Installs the packages of the programs that are missing, where that can be
# done without asking; elsewhere, or where it fails, names each of them.
provide() {
	local missing pair log
	mapfile -t missing < <(lacking "$@")
	((${#missing[@]})) || return 0
	if can_install; then
		log=$(mktemp)
		say "installing ${missing[*]##*:}"
		{
			apt-get update -q &&
				DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]##*:}"
		} >"$log" 2>&1 </dev/null || tail -n 5 "$log" >&2
		rm -f "$log"
		mapfile -t missing < <(lacking "$@")
	fi
	for pair in ${missing[@]+"${missing[@]}"}; do
		say "missing: ${pair%:*} (Debian package ${pair##*:})"
	done
	((${#missing[@]} == 0))
}

# The programs that a build needs beside Go.
compiler=(gcc:gcc /usr/include/stdio.h:libc6-dev objcopy:binutils)

# Finds a Go that is new enough, or has an older one download it. Debian's package is too
# old to build the library, but not for that.
find_go() {
	local want
	export GOTOOLCHAIN=local # else it downloads one for go.mod by itself, and another one
	want=$(awk '$1 == "go" { print $2 }' go.mod)
	is_go "$want" || [[ ! -x /usr/local/go/bin/go ]] || PATH=/usr/local/go/bin:$PATH
	if ! command -v go >/dev/null; then
		can_install || die "missing: Go $want or later (https://go.dev/dl/) in PATH or in /usr/local/go;" \
			"an older one (Debian package golang-go) does, too: it downloads a newer one"
		provide go:golang-go /etc/ssl/certs/ca-certificates.crt:ca-certificates "${compiler[@]}" || exit 1
	fi
	is_go "$want" || download_go
}

# True when there is a go in PATH, of the version $1 or a later one.
is_go() {
	local have
	command -v go >/dev/null || return 1
	have=$(GOFLAGS='' go env GOVERSION)
	have=${have%% *}
	[[ $(printf '%s\n' "$1" "${have#go}" | sort -V | head -n 1) == "$1" ]]
}

# Puts the pinned Go first in PATH. It lies in the module cache, where a Go that downloads
# a newer one by itself keeps it, and is checked against the checksum database on its way.
download_go() {
	local dir log answer
	dir=$(go env GOMODCACHE)/$go_download
	[[ -d $dir ]] || say "$(go version) is too old: downloading ${go_download#*/}"
	log=$(mktemp)
	if ! answer=$(cd / && GO111MODULE=on GOFLAGS='' GOWORK=off go mod download -json "$go_download" 2>"$log"); then
		{ cat "$log" && sed -n 's/^\t"Error": //p' <<<"$answer"; } >&2
		rm -f "$log"
		die "${go_download#*/} cannot be downloaded; a Go from https://go.dev/dl/ in PATH or in /usr/local/go does as well"
	fi
	rm -f "$log"
	[[ $answer == *"\"Sum\": \"$go_checksum\""* ]] || die "$dir does not have the checksum $go_checksum"
	# Modules are unpacked without the permission to run what is in them.
	[[ -x $dir/bin/go ]] || chmod -R a+x "$dir/pkg/tool" "$dir/bin"
	PATH=$dir/bin:$PATH
}

# The gate relies on internals of the toolchain, so nothing from the user's
# environment may change how it compiles.
toolchain() {
	find_go
	provide "${compiler[@]}" || exit 1
	export GOAMD64=v1 CGO_ENABLED=1 GOFLAGS=-buildvcs=false GOEXPERIMENT=''
	GOEXPERIMENT=$(experiments nodwarf5 nojsonv2)
	# The sections, and headers in the segment of the code, are for interpose/order.ld. go-nvml calls functions that NVML has deprecated.
	export CGO_CFLAGS='-O2 -g -Wno-deprecated-declarations -ffunction-sections -fdata-sections -fno-plt'
	unset GOOS GOARCH
	download_modules . ./cmd/tierallocctl ./internal/postlink ./internal/manual
}

# Those of Go's experiments that this Go knows; a later one may have no choice. Its DWARF 5 is more
# than some debuggers and valgrind 3.19 read. With its second JSON package the library maps a fifth
# more.
experiments() {
	local name known=()
	for name in "$@"; do
		! GOEXPERIMENT=$name go env GOEXPERIMENT >/dev/null 2>&1 || known+=("$name")
	done
	local IFS=,
	printf '%s\n' "${known[*]}"
}

# Downloads the modules that the packages (and go list's flags) among the arguments need, with one
# line instead of Go's line for each. Where that fails, the build that follows says why.
download_modules() {
	! GOPROXY=off go list -deps "$@" >/dev/null 2>&1 || return 0
	say "downloading Go modules"
	go list -deps "$@" >/dev/null 2>&1 || true
}

# How the Go runtime shall behave in somebody else's process, should it start: no
# signals sent to its own threads, no descriptors of its own.
godebug=asyncpreemptoff=1,containermaxprocs=0,updatemaxprocs=0

# Makes the library $1. More arguments are for go build.
link_library() {
	go build -trimpath -buildmode=c-shared -gcflags=tieralloc/...=-spectre=ret \
		-ldflags "-X runtime.godebugDefault=$godebug -extldflags '-Wl,-soname,$soname -Wl,--version-script=$here/interpose/exports.map -Wl,-z,defs -Wl,-z,noseparate-code -Wl,-T,$here/interpose/order.ld'" \
		"${@:2}" -o "$1" .
	# Go's linker names a Python script for gdb there, and every gdb session with
	# the library in it would start with a warning that it is not to be found.
	objcopy --remove-section .debug_gdb_scripts "$1"
	go run ./internal/postlink "$1"
}

# Makes the folder tmp, which is gone when the script ends.
make_tmp() {
	mkdir -p build
	tmp=$(mktemp -d build/.tmp.XXXXXX)
	# shellcheck disable=SC2064 # the name is wanted as it is now
	trap "rm -rf -- '$tmp'" EXIT
}

# The debug build: its locks check their order (internal/lockrank).
debug() {
	local tmp
	toolchain
	make_tmp
	link_library "$tmp/libtieralloc.so" -tags lockrank
	mkdir -p build/debug
	mv -f "$tmp/libtieralloc.so" build/debug/
	ln -sf libtieralloc.so "build/debug/$soname"
	rm -rf -- "$tmp"
	trap - EXIT
}

# Processes may have the old library mapped: it is replaced, never overwritten.
build() {
	local tmp name
	toolchain
	make_tmp
	link_library "$tmp/libtieralloc.so"
	go build -trimpath -o "$tmp/tierallocctl" ./cmd/tierallocctl
	document "$tmp"
	ln -s libtieralloc.so "$tmp/$soname"
	for name in bench_alloc bench_roll; do
		gcc -O2 -Wall -Iinterpose -o "$tmp/$name" "tests/bench/document/$name.c" \
			-L"$tmp" -ltieralloc -Wl,-rpath,"\$ORIGIN/.."
	done
	cp interpose/tieralloc.h "$tmp/ours.h"
	cp interpose/tieralloc_compat.h "$tmp/"
	chmod 0755 "$tmp/libtieralloc.so" "$tmp/tierallocctl"
	chmod 0644 "$tmp/ours.h" "$tmp/tieralloc_compat.h"
	mkdir -p build/benchmark
	mv -f "$tmp/libtieralloc.so" "$lib"
	mv -f "$tmp/$soname" build/
	mv -f "$tmp/ours.h" build/tieralloc.h
	mv -f "$tmp/tieralloc_compat.h" "$tmp/tierallocctl" build/
	mv -f "$tmp/bench_alloc" "$tmp/bench_roll" build/benchmark/
	rm -rf build/man build/completions
	mv -f "$tmp/man" "$tmp/completions" build/
	rm -f build/libtieralloc.h # cgo's, from a build by hand
	rm -rf -- "$tmp"
	trap - EXIT
}

# Makes the manual and the shells' completions below $1, by the tool that lies there.
document() {
	local shell
	"$1/tierallocctl" manual "$1/man"
	go run ./internal/manual interpose/tieralloc.h "$1/man"
	for shell in "${!completions[@]}"; do
		mkdir -p "$1/completions/$shell"
		"$1/tierallocctl" completion "$shell" >"$1/completions/$shell/${completions[$shell]}"
	done
}

# The name under which each shell looks for the completions of tierallocctl.
declare -A completions=([bash]=tierallocctl [zsh]=_tierallocctl [fish]=tierallocctl.fish)

# True when a source of what is built is newer than the library.
stale() {
	local made
	for made in "$lib" "build/$soname" build/{tieralloc.h,tieralloc_compat.h,tierallocctl,benchmark/bench_roll,man,completions}; do
		[[ -e $made ]] || return 0
	done
	[[ -n $(find . \( -path ./.git -o -path ./build -o -path ./tests \) -prune -o -type f \
		\( -name '*.go' -o -name '*.[chS]' -o -name '*.map' -o -name '*.ld' -o -name hot.txt -o -path './cmd/tierallocctl/*.html' -o -path './cmd/tierallocctl/*.js' -o -path './cmd/tierallocctl/*.css' -o -name go.mod -o -name go.sum -o -name build.sh \) \
		! -name '*_test.go' -newer "$lib" -print -quit) ]]
}

# Sets prefix and destdir by the arguments of install and uninstall.
destination() {
	prefix=/usr/local destdir=''
	while (($#)); do
		case $1 in
		--prefix=* | --destdir=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
		--prefix | --destdir)
			(($# > 1)) || usage
			printf -v "${1#--}" %s "$2"
			shift 2
			;;
		*) usage ;;
		esac
	done
	prefix=${prefix%/}
	[[ $prefix == /* ]] || die "--prefix $prefix: expected an absolute path"
	[[ $destdir == /* || -z $destdir ]] || destdir=$root/$destdir
	libdir=lib zshdir=share/zsh/site-functions
}

# place MODE SOURCE TARGET. Programs may start meanwhile with the library preloaded, so a
# file is there whole or not at all.
place() {
	install -d -- "${3%/*}"
	install -m "$1" -- "$2" "$3.new"
	mv -f -- "$3.new" "$3"
}

# Makes a link, as place does. Its name may be that of a link to a folder.
place_link() {
	ln -sfn -- "$1" "$2.new"
	mv -fT -- "$2.new" "$2"
}

# Without a prefix the folders are found from where this file lies.
pkg_config() {
	cat <<TEXT
prefix=${prefix:-\${pcfiledir\}/../..}
libdir=\${prefix}/$libdir
includedir=\${prefix}/include

Name: tieralloc
Description: Memory allocator with tiers, to preload or to link with
Version: $version
Libs: -L\${libdir} -ltieralloc
Cflags: -I\${includedir}
TEXT
}

# Places all files below $destdir$prefix.
place_files() {
	local to=$destdir$prefix page
	place 0755 "$lib" "$to/$libdir/libtieralloc.so.$version"
	place_link "libtieralloc.so.$version" "$to/$libdir/$soname"
	place_link "$soname" "$to/$libdir/libtieralloc.so"
	place 0644 build/tieralloc.h "$to/include/tieralloc.h"
	place 0644 build/tieralloc_compat.h "$to/include/tieralloc_compat.h"
	place 0644 <(pkg_config) "$to/$libdir/pkgconfig/tieralloc.pc"
	place 0755 build/tierallocctl "$to/bin/tierallocctl"
	for page in build/man/man[137]/*.[137]; do
		[[ ! -f $page ]] || place 0644 "$page" "$to/share/${page#build/}"
	done
	place_completion bash "$to/share/bash-completion/completions"
	place_completion zsh "$to/$zshdir"
	place_completion fish "$to/share/fish/vendor_completions.d"
}

# place_completion SHELL DIR
place_completion() {
	local file
	for file in "build/completions/$1"/*; do
		[[ ! -f $file ]] || place 0644 "$file" "$2/${file##*/}"
	done
}

install_files() {
	local to=$destdir$prefix
	if stale; then build; fi
	place_files
	refresh
	if [[ -n $destdir ]]; then
		say "installed below $to"
	elif PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -q -F " => $prefix/lib/$soname"; then
		say "installed below $prefix: LD_PRELOAD=$soname COMMAND"
	else
		say "installed below $prefix, where the linker does not look: LD_PRELOAD=$prefix/lib/$soname COMMAND"
	fi
}

uninstall_files() {
	local to=$destdir$prefix page
	rm -f -- "$to"/lib/libtieralloc.so{,.[0-9]*} "$to"/include/tieralloc{,_compat}.h "$to"/lib/pkgconfig/tieralloc.pc \
		"$to"/bin/tierallocctl "$to"/share/man/man[137]/tieralloc*.[137] \
		"$to"/share/bash-completion/completions/tierallocctl "$to/$zshdir/_tierallocctl" \
		"$to"/share/fish/vendor_completions.d/tierallocctl.fish
	for page in "$to"/share/man/man3/ta_*.3; do
		if [[ -f $page ]] && grep -q -e tieralloc -e "^\.so man3/ta_" "$page"; then rm -f -- "$page"; fi
	done
	refresh
}

# Tells the linker of libraries that came or went.
refresh() {
	if [[ -z $destdir && $(id -u) == 0 ]]; then PATH=$PATH:/sbin:/usr/sbin ldconfig; fi
}

# stage NAME PREFIX: places all files, without symbols, in a tree for a package, and the pages to read.
stage() {
	local file
	prefix=$2 destdir=$work/$1
	place_files
	strip --strip-unneeded "$destdir$prefix/$libdir/libtieralloc.so.$version" "$destdir$prefix/bin/tierallocctl"
	for file in README.md docs/* docs/examples/*; do
		[[ -d $file ]] || place 0644 "$file" "$destdir$prefix/share/doc/tieralloc/$file"
	done
	find "$destdir" -name '*.[137]' -path '*/man/*' -exec gzip -9n {} +
}

# Adds to the .deb $1 the file by which packages of programs that are linked with the library come to
# depend on this one. nfpm has no setting for it.
add_shlibs() (
	cd -- "$work"
	echo "libtieralloc ${version%%.*} tieralloc (>= ${version%%.*}~)" >shlibs
	ar x "$1" control.tar.gz
	gunzip control.tar.gz
	tar -r -f control.tar --owner=0 --group=0 --numeric-owner --mode=0644 --mtime="@$SOURCE_DATE_EPOCH" ./shlibs
	gzip -9n control.tar
	ar rD "$1" control.tar.gz
)

# Makes all packages in a folder of their own, which then takes the place of the one before.
package() {
	local work out
	if stale; then build; fi
	toolchain
	SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
	export SOURCE_DATE_EPOCH
	mkdir -p build
	work=$(mktemp -d build/.packages.XXXXXX)
	work=$here/$work
	# shellcheck disable=SC2064 # the name is wanted as it is now
	trap "rm -rf -- '$work'" EXIT
	libdir=lib/x86_64-linux-gnu zshdir=share/zsh/vendor-completions stage deb /usr
	chmod 0644 "$work/deb/usr/lib/x86_64-linux-gnu/libtieralloc.so.$version" # as Debian's policy has it
	libdir=lib64 zshdir=share/zsh/site-functions stage rpm /usr
	libdir=lib zshdir=share/zsh/site-functions stage tar ''
	place 0644 LICENSE "$work/rpm/usr/share/doc/tieralloc/LICENSE"
	place 0644 LICENSE "$work/tar/LICENSE"
	place 0644 internal/packages/INSTALL.md "$work/tar/INSTALL.md"
	out=$work/packages
	mkdir "$out"
	find "$work" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	go run ./internal/packages -work "$work" -out "$out"
	tar -C "$work/tar" --sort=name --owner=0 --group=0 --numeric-owner --transform "s,^\.,tieralloc-$version," -c . |
		gzip -9n >"$out/tieralloc-$version-linux-x86_64.tar.gz"
	CGO_ENABLED=0 go run "$nfpm" package --config "$work/deb.json" --packager deb --target "$out" >/dev/null
	add_shlibs "$out"/tieralloc_*.deb
	CGO_ENABLED=0 go run "$nfpm" package --config "$work/rpm.json" --packager rpm --target "$out" >/dev/null
	rm -rf build/packages
	mv -T "$out" build/packages
	rm -rf -- "$work"
	trap - EXIT
	say "in build/packages: $(cd build/packages && echo *)"
}

# The statistics are kept where TA_STATS_FILE says; the summary is tierallocctl's.
run() {
	[[ ${1-} != -- ]] || shift
	(($#)) || usage
	if stale; then build >&2; fi
	cd -- "$root"
	exec "$here/build/tierallocctl" run -- "$@"
}

# The programs that tests/programs runs. Tests name those that are still missing.
test_programs=(
	redis-server:redis-server redis-cli:redis-tools redis-benchmark:redis-tools
	'/usr/lib/postgresql/*/bin/pgbench:postgresql' g++:g++ xz:xz-utils sqlite3:sqlite3 gdb:gdb
	valgrind:valgrind perl:perl node:nodejs python3:python3 /usr/bin/python3:python3 strace:strace
	/usr/lib/python3/dist-packages/numpy:python3-numpy /usr/lib/python3/dist-packages/torch:python3-torch
	qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio
	git:git curl:curl openssl:openssl setpriv:util-linux rev:bsdextrautils find:findutils
	musl-gcc:musl-tools chromium:chromium php:php-cli '/usr/lib/php/*/mbstring.so:php-mbstring' '/usr/lib/php/*/dom.so:php-xml'
	'/usr/lib/php/*/curl.so:php-curl' '/usr/lib/php/*/sqlite3.so:php-sqlite3' '/usr/lib/php/*/gd.so:php-gd'
	'/usr/lib/php/*/intl.so:php-intl' '/usr/lib/php/*/zip.so:php-zip' apache2:apache2-bin
	'/usr/lib/apache2/modules/libphp*.so:libapache2-mod-php' nginx:nginx mariadbd:mariadb-server-core mariadb-dump:mariadb-client
	lintian:lintian rpm:rpm ssh:openssh-client /usr/sbin/sshd:openssh-server
	firefox-esr:firefox-esr javac:default-jdk-headless clang++:clang Rscript:r-base-core ffmpeg:ffmpeg faketime:faketime
)

# run_tests ARGS...: go test over everything, unless a package is among ARGS. The unit tests
# beside the code run no programs.
run_tests() {
	local arg packages=(./...) programs=no
	for arg in "$@"; do
		case $arg in ./* | . | tieralloc*) packages=() ;; esac
		case $arg in ./... | ./tests* | tieralloc*) programs=yes ;; esac
	done
	if ((${#packages[@]})) || [[ $programs == yes ]]; then provide "${test_programs[@]}" || true; fi
	download_modules -test ./...
	if [[ $(id -u) == 0 ]] && ! unshare -m true 2>/dev/null; then
		say "there are no mount namespaces here, as after a plain chroot: tests that need one are skipped, or fail with CI=true"
	fi
	# What a test runs is given up when it makes no progress (testlib.Run); this is for the tests themselves.
	exec go test -count=1 -timeout 4h ${packages[@]+"${packages[@]}"} "$@"
}

lint() {
	local bad failed=0 scripts
	provide shellcheck:shellcheck || failed=1
	bad=$(gofmt -l .)
	[[ -z $bad ]] || { say "gofmt would change:" "$bad"; failed=1; }
	if command -v clang-format >/dev/null; then
		git ls-files -z '*.c' '*.h' | xargs -0 clang-format --dry-run --Werror || failed=1
	else
		say "clang-format is not installed: the format of C is not checked"
	fi
	go vet ./... || failed=1
	go run "$staticcheck" ./... || failed=1
	mapfile -t scripts < <(find . \( -path ./.git -o -path ./build \) -prune -o -name '*.sh' -print)
	shellcheck .ci/run "${scripts[@]}" || failed=1
	go test -count=1 ./tests/verify/ || failed=1
	return "$failed"
}

verb=${1-}
(($# == 0)) || shift
case $verb in
build)
	(($# == 0)) || usage
	build
	;;
debug)
	(($# == 0)) || usage
	debug
	;;
run) run "$@" ;;
install)
	destination "$@"
	install_files
	;;
uninstall)
	destination "$@"
	uninstall_files
	;;
package)
	(($# == 0)) || usage
	package
	;;
test)
	build
	run_tests "$@"
	;;
bench)
	build
	if [[ ${1-} == cpu ]]; then
		shift
		go build -o build/bench-cpu ./tests/bench/cpu
		cd -- "$root"
		exec "$here/build/bench-cpu" --root "$here" "$@"
	fi
	exec go test -run '^$' -bench . ./tests/bench/ "$@"
	;;
lint)
	(($# == 0)) || usage
	build
	lint
	;;
*) usage ;;
esac
