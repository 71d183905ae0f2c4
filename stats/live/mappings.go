package live

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapping is a mapping of a process that may be of a live page.
type mapping struct {
	from, to, inode uint64
	path            string
}

// pageMappings calls use for the mappings of a process that may be of a live page, until use
// returns false: writable shared mappings of a page's size, from the start of a file. proc is the
// process's folder.
//
// It asks the kernel for shared mappings (PROCMAP_QUERY, Linux 6.11). An older one writes the text
// of all mappings, which takes it ten times as long.
func pageMappings(proc string, use func(mapping) bool) {
	fd, err := unix.Open(proc+"/maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if !askMappings(fd, use) {
		readMappings(descriptor(fd), use)
	}
}

// mappingQuery is the structure of a PROCMAP_QUERY (linux/fs.h).
type mappingQuery struct {
	size, flags, at           uint64
	from, to, rights          uint64
	pageSize, offset, inode   uint64
	devMajor, devMinor        uint32
	nameSize, buildIDSize     uint32
	nameAddress, buildAddress uint64
}

// Of linux/fs.h.
const (
	procmapQuery   = 0xc0686611 // with the size of a mappingQuery
	queryReadable  = 0x01
	queryWritable  = 0x02
	queryShared    = 0x08
	queryNext      = 0x10 // the mapping at the address, or the next
	queryOfFile    = 0x20
	pageRights     = queryReadable | queryWritable | queryShared
	mappingsAtMost = 1 << 16 // as vm.max_map_count
)

// question is a query with room for the answer. It is on the heap, where it does not move.
type question struct {
	mappingQuery
	name [unix.PathMax]byte
}

var questions = sync.Pool{New: func() any { return new(question) }}

// askMappings is pageMappings by queries. It reports false if the kernel does not answer them.
func askMappings(maps int, use func(mapping) bool) (ok bool) {
	q := questions.Get().(*question)
	defer questions.Put(q)
	at := uint64(0)
	for range mappingsAtMost {
		q.mappingQuery = mappingQuery{size: uint64(unsafe.Sizeof(q.mappingQuery)), at: at,
			flags: pageRights | queryNext | queryOfFile, nameSize: uint32(len(q.name)),
			nameAddress: uint64(uintptr(unsafe.Pointer(&q.name)))}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(maps), procmapQuery,
			uintptr(unsafe.Pointer(&q.mappingQuery)))
		runtime.KeepAlive(q)
		if errno != 0 {
			return errno == unix.ENOENT // there is no further one
		}
		if m, ok := q.mapping(); ok && !use(m) {
			return true
		}
		at = q.to
	}
	return true
}

// mapping returns the answer. ok says that it may be of a live page.
func (q *question) mapping() (m mapping, ok bool) {
	if q.rights != pageRights || q.offset != 0 || !isSize(q.to-q.from) {
		return m, false
	}
	name := text(q.name[:min(q.nameSize, uint32(len(q.name)))])
	return mapping{q.from, q.to, q.inode, name}, strings.HasPrefix(name, "/")
}

// readMappings is pageMappings by the text of /proc/PID/maps.
func readMappings(maps io.Reader, use func(mapping) bool) {
	buffer := texts.Get().(*bytes.Buffer)
	defer texts.Put(buffer)
	buffer.Reset()
	if _, err := buffer.ReadFrom(maps); err != nil {
		return
	}
	for line := range bytes.Lines(buffer.Bytes()) {
		if m, ok := parseMapping(line); ok && !use(m) {
			return
		}
	}
}

// descriptor is an open file, without what an os.File has beside.
type descriptor int

func (d descriptor) Read(p []byte) (n int, err error) {
	n, err = unix.Read(int(d), p)
	if err == nil && n == 0 {
		err = io.EOF
	}
	return max(n, 0), err
}

var texts = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// parseMapping parses a line of /proc/PID/maps. ok says that it describes a mapping that may be of
// a live page.
func parseMapping(line []byte) (m mapping, ok bool) {
	if !bytes.Contains(line, []byte(" rw-s 00000000 ")) {
		return m, false
	}
	fields := bytes.Fields(line) // range, rights, offset, device, inode, path
	at := bytes.IndexByte(line, '/')
	if len(fields) < 6 || at < 0 {
		return m, false
	}
	from, to, _ := strings.Cut(string(fields[0]), "-")
	var bad [3]error
	m.from, bad[0] = strconv.ParseUint(from, 16, 64)
	m.to, bad[1] = strconv.ParseUint(to, 16, 64)
	m.inode, bad[2] = strconv.ParseUint(string(fields[4]), 10, 64)
	m.path = strings.TrimSuffix(string(line[at:]), "\n")
	return m, errors.Join(bad[:]...) == nil && isSize(m.to-m.from)
}
