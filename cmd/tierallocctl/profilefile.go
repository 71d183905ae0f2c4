package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/pprof/profile"
	"golang.org/x/sys/unix"

	"tieralloc/stats"
	"tieralloc/stats/live"
)

// profileMax is above the length of any profile of the library. It bounds what a damaged compressed
// file may unpack to.
const profileMax = 1 << 30

// A profileFile is a profile with the file that it was read from.
type profileFile struct {
	path    string
	owner   uint32 // user
	profile *profile.Profile
}

var profileRequest = request{what: stats.AskProfile, thing: "profile", variable: "TA_PROFILE",
	without: "takes no profile: start it with TA_PROFILE=FILE (and without TA_SECURE=1)",
	ended:   "the file that TA_PROFILE names has its profile if it was not killed"}

// openProfile reads a profile: of a file, or of a running process by its number.
func openProfile(name string, wait time.Duration) (*profileFile, error) {
	return openAsked(&profileRequest, name, wait, readProfile,
		func(f *profileFile, path string) { f.path = path })
}

// readProfile reads a profile, compressed or not.
func readProfile(path string) (*profileFile, error) {
	file, err := live.OpenRegular(unix.AT_FDCWD, path, path, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := readProfileText(file)
	if err != nil {
		return nil, fmt.Errorf("%s: not a profile: %w", path, err)
	}
	p, err := decodeProfile(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &profileFile{path: path, owner: ownerOf(file), profile: p}, nil
}

// readProfileText reads a file and unpacks it if it is compressed.
func readProfileText(file io.Reader) ([]byte, error) {
	data, err := readAtMost(file, profileMax)
	if err == nil && bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		var packed *gzip.Reader
		if packed, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, err = readAtMost(packed, profileMax)
		}
	}
	return data, err
}

func readAtMost(r io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("it has more than %s", size(uint64(most)))
	}
	return data, err
}

// ownerOf returns the user that owns a file.
func ownerOf(file *os.File) uint32 {
	info, err := file.Stat()
	if err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			return stat.Uid
		}
	}
	return ^uint32(0) // nobody
}

// decodeProfile decodes a profile and checks that its parts fit together.
func decodeProfile(data []byte) (*profile.Profile, error) {
	text := bytes.TrimSpace(data)
	if len(text) == 0 {
		return nil, errors.New("not a profile: the file is empty")
	}
	if text[0] == '{' {
		if _, err := decodeReport(text); err == nil {
			return nil, errors.New("a report, not a profile: \"tierallocctl stats\" shows it; " +
				"TA_PROFILE=FILE writes profiles")
		}
	}
	p, err := profile.ParseUncompressed(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err == nil && len(p.SampleType) == 0 {
		err = errors.New("it has no sample types")
	}
	if err != nil {
		return nil, fmt.Errorf("not a profile in pprof's format, as TA_PROFILE=FILE writes it: %w",
			err)
	}
	return p, nil
}

// typeNames lists the sample types of a profile.
func (f *profileFile) typeNames() (names []string) {
	for _, t := range f.profile.SampleType {
		names = append(names, printable(t.Type))
	}
	return names
}

// typeIndex returns the index of a sample type, or -1.
func (f *profileFile) typeIndex(name string) int {
	return slices.IndexFunc(f.profile.SampleType,
		func(t *profile.ValueType) bool { return t.Type == name })
}

// sampleType returns the index of the sample type that the user named, or of the default one.
func (f *profileFile) sampleType(name string) (int, error) {
	if name == "" {
		if i := f.typeIndex(f.profile.DefaultSampleType); i >= 0 {
			return i, nil
		}
		return len(f.profile.SampleType) - 1, nil // the default of pprof
	}
	if i := f.typeIndex(name); i >= 0 {
		return i, nil
	}
	names := f.typeNames()
	hint := ""
	if near := nearest(name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return 0, usage("--type %s: %s has %s%s", name, f.path, strings.Join(names, ", "), hint)
}

// sameSampleTypes checks that one profile can be subtracted from another.
func sameSampleTypes(old, f *profileFile) error {
	same := func(a, b *profile.ValueType) bool { return a.Type == b.Type && a.Unit == b.Unit }
	if slices.EqualFunc(old.profile.SampleType, f.profile.SampleType, same) {
		return nil
	}
	return fmt.Errorf("--diff %s: it has the sample types %s; expected those of %s: %s", old.path,
		strings.Join(old.typeNames(), ", "), f.path, strings.Join(f.typeNames(), ", "))
}
