package main

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"time"
)

// Thinning: a sample is written if a figure differs from the last that was written by more than
// this part of its largest value and by more than recordFine bytes, or if an event has happened.
// Smaller changes are written once in recordPause.
const (
	recordPart  = 64
	recordFine  = 64 << 10
	recordPause = 1000 // milliseconds
)

// recordEvents are the figures whose every change is written: what is counted, and caps.
var recordEvents = map[string]bool{"soft": true, "hard": true, "soft_met": true, "hard_met": true,
	"refused": true, "moved": true, "failed": true}

// recordingWriter writes a recording. Times are milliseconds since its start, and values those of
// figuresOf.
type recordingWriter struct {
	zip     *gzip.Writer
	lines   *json.Encoder
	flushed int64 // when; what was written since is lost if this program is killed
	unsaved bool  // something was
	last    map[int]*writtenSample
	err     error // the first one; nothing is written after it
}

// writtenSample is the last sample of a process that was written.
type writtenSample struct {
	t       int64
	values  map[string]uint64
	largest map[string]uint64
}

func newRecordingWriter(file io.Writer, start time.Time, interval time.Duration,
	command []string) *recordingWriter {
	zip := gzip.NewWriter(file)
	w := &recordingWriter{zip: zip, lines: json.NewEncoder(zip), last: map[int]*writtenSample{}}
	w.keep(w.lines.Encode(recordHeader{recordingSchema, start.UnixNano(), interval.Milliseconds(),
		command}))
	w.keep(zip.Flush())
	return w
}

func (w *recordingWriter) keep(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *recordingWriter) write(l recordLine) {
	if w.err == nil {
		w.unsaved = true
		w.keep(w.lines.Encode(l))
	}
}

// begin writes that a process was found.
func (w *recordingWriter) begin(t int64, id int, b recordBegin) {
	w.last[id] = &writtenSample{t: t - recordPause, values: map[string]uint64{},
		largest: map[string]uint64{}}
	w.write(recordLine{T: t, ID: id, Begin: &b})
}

// sample writes the figures of a process that have changed, unless they wait for a later sample.
func (w *recordingWriter) sample(t int64, id int, values map[string]uint64, final bool) {
	last := w.last[id]
	for name := range last.values {
		if _, ok := values[name]; !ok {
			values[name] = 0
		}
	}
	changed := map[string]uint64{}
	due := final || t-last.t >= recordPause
	for name, v := range values {
		v = min(v, recordMostValue)
		last.largest[name] = max(last.largest[name], v)
		if old := last.values[name]; v != old {
			changed[name] = v
			due = due || recordEvents[lastWord(name)] ||
				max(v, old)-min(v, old) > max(recordFine, last.largest[name]/recordPart)
		}
	}
	if len(changed) == 0 || !due {
		return
	}
	w.write(recordLine{T: t, ID: id, Set: changed})
	last.t = t
	for name, v := range changed {
		last.values[name] = v
	}
}

// end writes that a process has ended.
func (w *recordingWriter) end(t int64, id int, how string) {
	delete(w.last, id)
	w.write(recordLine{T: t, ID: id, End: how})
}

// flush makes what was written readable, at most once in recordPause.
func (w *recordingWriter) flush(t int64) {
	if w.unsaved && w.err == nil && t-w.flushed >= recordPause {
		w.flushed, w.unsaved = t, false
		w.keep(w.zip.Flush())
	}
}

// close writes the last line.
func (w *recordingWriter) close(t int64, status int) error {
	w.write(recordLine{T: t, Status: &status})
	w.keep(w.zip.Close())
	return w.err
}
