package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"tieralloc/stats"
)

// ErrOther is an error of Order.
var ErrOther = errors.New("another request came at the same time")

// RegionNameMax is the length of a region's name at most.
const RegionNameMax = 15

// Region is what became of a region of device memory by an order.
type Region struct {
	Device uint64
	Name   string        // it may hold any bytes but a newline
	Errno  syscall.Errno // 0: it sleeps, or is awake
	Bytes  uint64        // given back to the driver, or mapped again
	Took   uint64        // nanoseconds
}

// RegionName is a name as an order has it; ok: there are such names.
func RegionName(name string) (words [2]uint64, ok bool) {
	var b [2 * 8]byte
	copy(b[:], name)
	return [2]uint64{binary.NativeEndian.Uint64(b[:]), binary.NativeEndian.Uint64(b[8:])},
		name != "" && len(name) <= RegionNameMax && !strings.Contains(name, "\x00")
}

// Order has the process carry out an order about regions within a time, and waits for that. It
// fills in Until. Errors are those of Ask, and ErrOther. refused is why the process does nothing:
// ENODATA if it leaves device memory alone, ENODEV if it uses none, EOPNOTSUPP if it has no thread
// for orders, ETIMEDOUT if it saw the order too late, E2BIG if it has too many regions.
func (page *Page) Order(o stats.LiveOrder, wait time.Duration) (all []Region,
	refused syscall.Errno, err error) {
	o.Until = uint64(time.Now().Add(wait).UnixNano())
	a, err := page.ask(stats.AskRegions, wait, func(file *os.File) error {
		_, err := file.WriteAt(words(&o), int64(unsafe.Offsetof(stats.LivePage{}.Order)))
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	mine, text, _ := strings.Cut(a.File, "\n")
	switch {
	case mine != strconv.FormatUint(o.Until, 10):
		return nil, 0, ErrOther
	case a.Errno != 0:
		return nil, a.Errno, nil
	}
	for line := range strings.Lines(text) {
		r, err := parseRegion(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, 0, page.named(err)
		}
		all = append(all, r)
	}
	return all, 0, nil
}

func parseRegion(line string) (r Region, err error) {
	f := strings.SplitN(line, " ", 5)
	if len(f) != 5 {
		return r, fmt.Errorf("damaged live page: %q is no region", line)
	}
	var n [4]uint64
	for i := range n {
		if n[i], err = strconv.ParseUint(f[i], 10, 64); err != nil {
			return r, fmt.Errorf("damaged live page: %q is no region", line)
		}
	}
	return Region{Device: n[0], Name: f[4], Errno: syscall.Errno(n[1]), Bytes: n[2],
		Took: n[3]}, nil
}
