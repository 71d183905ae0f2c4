package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tieralloc/internal/config"
	"tieralloc/stats"
	"tieralloc/stats/live"
)

// tierNames are the tiers in the order of report.tiers.
var tierNames = func() (names [config.TierCount]string) {
	for i := range names {
		names[i] = strings.ToUpper(config.TierWord(uint32(i)))
	}
	return names
}()

func (r *report) tiers() [3]*tier { return [3]*tier{r.Tiers.Fast, r.Tiers.Normal, r.Tiers.Slow} }

// decodeReport decodes a report and checks that it is complete and of the format that this program
// reads.
func decodeReport(text []byte) (*report, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("the file is empty")
	}
	r := &report{}
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(text, r); {
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("not statistics of tieralloc, or cut short: no JSON from byte %d "+
			"on (%w)", syntax.Offset, err)
	case err != nil:
		return nil, fmt.Errorf("not statistics of tieralloc: %w", err)
	case r.Schema == "":
		return nil, errors.New("not statistics of tieralloc: there is no \"schema\"")
	case r.Schema != stats.Schema:
		return nil, fmt.Errorf("statistics of format %q; this program reads %q", r.Schema,
			stats.Schema)
	case r.Heap == nil || r.Tiers.Fast == nil || r.Tiers.Normal == nil || r.Tiers.Slow == nil:
		return nil, errors.New("damaged statistics: heap or tiers are missing")
	}
	if len(r.Devices) > stats.DeviceMax {
		return nil, fmt.Errorf("damaged statistics: %d devices", len(r.Devices))
	}
	for _, m := range r.Managers {
		if m == nil || slices.Contains(m.Instances, nil) {
			return nil, errors.New("damaged statistics: a memory manager or an instance is missing")
		}
	}
	if slices.Contains(r.Sites, nil) {
		return nil, errors.New("damaged statistics: a site is missing")
	}
	for _, d := range r.Devices {
		if d == nil || d.Tiers.Fast == nil || d.Tiers.Slow == nil {
			return nil, errors.New("damaged statistics: tiers of a device are missing")
		}
	}
	makePrintable(reflect.ValueOf(r))
	return r, nil
}

// makePrintable makes all strings in v printable, so that no control character of a file reaches a
// terminal.
func makePrintable(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(printable(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			makePrintable(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			makePrintable(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			makePrintable(v.Index(i))
		}
	case reflect.Map:
		clean := reflect.MakeMap(v.Type())
		for entry := v.MapRange(); entry.Next(); {
			clean.SetMapIndex(reflect.ValueOf(printable(entry.Key().String())), entry.Value())
		}
		v.Set(clean)
	}
}

// reportMax is above the length of any report, which is some 100 KiB.
const reportMax = 16 << 20

// readReportFile reads a statistics file.
func readReportFile(path string) (text []byte, r *report, err error) {
	file, err := live.OpenRegular(unix.AT_FDCWD, path, path, 0)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	text, err = io.ReadAll(io.LimitReader(file, reportMax+1))
	if err != nil {
		return nil, nil, err
	}
	if len(text) > reportMax {
		return nil, nil, fmt.Errorf("%s: not statistics of tieralloc: it has more than %s", path,
			size(reportMax))
	}
	if r, err = decodeReport(text); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, r, nil
}
