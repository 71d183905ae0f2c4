package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// recordingSchema names the format of a recording: lines of JSON, compressed by gzip. The first
// line is a recordHeader and each other one a recordLine.
const recordingSchema = "tieralloc-recording/1"

// recordHeader is the first line of a recording.
type recordHeader struct {
	Schema      string   `json:"schema"`
	StartUnixNs int64    `json:"start_unix_ns"`
	IntervalMs  int64    `json:"interval_ms"`
	Command     []string `json:"command,omitempty"` // absent: processes were named
}

// recordLine says what happened at a time: a process began, some of its figures changed, it ended,
// or the recording did.
type recordLine struct {
	T      int64             `json:"t"`            // milliseconds since the start
	ID     int               `json:"id,omitempty"` // of the process in this recording, from 1
	Begin  *recordBegin      `json:"begin,omitempty"`
	Set    map[string]uint64 `json:"set,omitempty"` // the figures that changed
	End    string            `json:"end,omitempty"`
	Status *int              `json:"status,omitempty"` // of the command; on the last line only
}

// recordBegin describes a process.
type recordBegin struct {
	Pid     int    `json:"pid"`
	Parent  int    `json:"parent,omitempty"` // its number; 0: not known
	Program string `json:"program"`
	Start   int64  `json:"start"` // when it loaded the library, as T; below 0: before the recording
}

// Limits on what a recording holds. They keep sums and times from overflowing.
const (
	recordMostValue = 1 << 53
	recordMostTime  = 1 << 42         // 139 years
	recordMostLine  = 1 << 20         // bytes
	recordMostBytes = int64(32) << 30 // decompressed
)

// recording is a recording as it was read.
type recording struct {
	recordHeader
	path      string
	processes []*recorded
	end       int64 // the last time in it
	samples   int
	whole     bool // the last line is there
}

// recorded is a process of a recording.
type recorded struct {
	recordBegin
	id     int
	begin  int64
	end    int64
	how    string // it ended; "": it ran when the recording ended
	series map[string][]point
}

// point is a value from a time on.
type point struct {
	t int64
	v uint64
}

// readRecording reads a file. A recording that was cut off is read up to its last whole line.
func readRecording(path string) (*recording, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := &recording{path: path}
	if err := r.read(file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range r.processes {
		if p.how == "" {
			p.end = r.end
		}
	}
	return r, nil
}

func (r *recording) read(file io.Reader) error {
	zip, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("not a recording of tierallocctl record: %w", err)
	}
	lines := bufio.NewReaderSize(io.LimitReader(zip, recordMostBytes), recordMostLine)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == nil && n == 1:
			err = r.header(line)
		case err == nil:
			err = r.line(line)
		case n > 1 && (err == io.EOF && len(line) == 0 || errors.Is(err, io.ErrUnexpectedEOF)):
			return nil
		case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
			err = errors.New("it was cut short")
		case errors.Is(err, bufio.ErrBufferFull):
			err = fmt.Errorf("it has more than %s", size(recordMostLine))
		}
		if err != nil {
			return fmt.Errorf("damaged recording: line %d: %w", n, err)
		}
	}
}

func (r *recording) header(line []byte) error {
	if err := json.Unmarshal(line, &r.recordHeader); err != nil {
		return err
	}
	if r.Schema != recordingSchema {
		return fmt.Errorf("the format is %.40q; this program reads %q", r.Schema, recordingSchema)
	}
	for i, arg := range r.Command {
		r.Command[i] = printable(arg)
	}
	return nil
}

func (r *recording) line(text []byte) error {
	var l recordLine
	if err := json.Unmarshal(bytes.TrimSpace(text), &l); err != nil {
		return err
	}
	if l.T < 0 || l.T > recordMostTime {
		return fmt.Errorf("the time t is %d; expected 0 to %d", l.T, int64(recordMostTime))
	}
	r.end = max(r.end, l.T)
	if l.Status != nil {
		r.whole = true
		return nil
	}
	if l.Begin != nil {
		return r.begin(l)
	}
	if l.ID < 1 || l.ID > len(r.processes) || r.processes[l.ID-1].how != "" {
		return fmt.Errorf("no process has the id %d", l.ID)
	}
	p := r.processes[l.ID-1]
	if l.T < p.end {
		return fmt.Errorf("the time t is %d, after %d", l.T, p.end)
	}
	p.end, p.how = l.T, printable(l.End)
	if len(l.Set) > 0 {
		r.samples++
	}
	for name, v := range l.Set {
		if v > recordMostValue {
			return fmt.Errorf("%.40q is %d; expected at most %d", name, v, uint64(recordMostValue))
		}
		name = printable(name)
		p.series[name] = append(p.series[name], point{l.T, v})
	}
	return nil
}

func (r *recording) begin(l recordLine) error {
	if l.ID != len(r.processes)+1 {
		return fmt.Errorf("the process's id is %d; expected %d", l.ID, len(r.processes)+1)
	}
	b := *l.Begin
	if b.Start > l.T || b.Start < -recordMostTime {
		return fmt.Errorf("the process's start is %d; expected at most t, which is %d", b.Start,
			l.T)
	}
	b.Program = printable(b.Program)
	begin := max(0, b.Start)
	r.processes = append(r.processes, &recorded{recordBegin: b, id: l.ID, begin: begin, end: begin,
		series: map[string][]point{}})
	return nil
}

// name says which process it is.
func (p *recorded) name() string { return fmt.Sprintf("%s (%d)", p.Program, p.Pid) }

// seconds writes a time of a recording.
func seconds(t int64) string {
	if t < 60_000 {
		return fmt.Sprintf("%.1fs", float64(t)/1000)
	}
	return (time.Duration(t) * time.Millisecond).Round(time.Second).String()
}
