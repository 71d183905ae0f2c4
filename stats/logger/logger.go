// Package logger is the control plane's log. It takes events from the ring and writes them by
// zerolog, as JSON lines, to standard error or TA_LOG_FILE.
//
// It is ordinary Go. Its init runs when the Go runtime starts; TA_LOG is one of the settings that
// start it. C never calls it.
package logger

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"github.com/rs/zerolog"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

func init() {
	if config.InForce.Log != config.LogOff {
		fd, file := stats.LogFile()
		go run(zerolog.New(sink{fd, file}).Level(level(config.InForce.Log)))
	}
}

func level(l uint32) zerolog.Level {
	switch l {
	case config.LogError:
		return zerolog.ErrorLevel
	case config.LogWarn:
		return zerolog.WarnLevel
	case config.LogInfo:
		return zerolog.InfoLevel
	default:
		return zerolog.DebugLevel
	}
}

func text(t *config.Text) string {
	return string(unsafe.Slice((*byte)(raw.Ptr(t.Addr())), t.Len()))
}

// run writes events until the process ends.
func run(log zerolog.Logger) {
	configuration(log, &config.InForce)
	for {
		ends := stats.Rest()
		var e stats.Event
		for stats.Take(&e) {
			write(log, &e)
		}
		if ends {
			if n := stats.Dropped(); n != 0 {
				log.Warn().Uint64("events", n).Msg("log events were dropped")
			}
			stats.Finished()
			return
		}
	}
}

// at adds the time to a line, in UTC: for the local time Go would open a file.
func at(line *zerolog.Event, t time.Time) *zerolog.Event {
	return line.Time(zerolog.TimestampFieldName, t.UTC())
}

// configuration logs the settings in effect.
func configuration(log zerolog.Logger, s *config.Settings) {
	at(log.Info(), time.Now()).Int("pid", syscall.Getpid()).
		Bool("TA_INTERPOSE", s.Interpose).
		Bool("TA_STRICT", s.Strict).
		Str("TA_LOG", level(s.Log).String()).
		Str("TA_LOG_FILE", text(&s.LogFile)).
		Str("TA_STATS_FILE", text(&s.StatsFile)).
		Stringer("TA_PURGE_DELAY", time.Duration(s.PurgeDelay)).
		Bool("TA_BACKGROUND", s.Background).
		Bool("TA_SECURE", s.Secure).
		Int("rules", int(s.Rules.Count)).
		Msg("configuration")
}

// shape is the form of an event in the log: its level, its message and the names of its arguments.
type shape struct {
	level   zerolog.Level
	message string
	args    []string
}

var shapes = map[stats.EventKind]shape{
	stats.EventFork:      {zerolog.InfoLevel, "fork", nil},
	stats.EventThread:    {zerolog.DebugLevel, "thread has a heap", []string{"heap"}},
	stats.EventThreadEnd: {zerolog.DebugLevel, "thread ended", []string{"heap"}},
	stats.EventSegment:   {zerolog.DebugLevel, "segment mapped", []string{"address", "bytes"}},
	stats.EventSegmentEnd: {zerolog.DebugLevel, "segment unmapped",
		[]string{"address", "bytes"}},
	stats.EventPurge:         {zerolog.DebugLevel, "memory purged", []string{"bytes"}},
	stats.EventNoMemory:      {zerolog.ErrorLevel, "out of memory", []string{"bytes"}},
	stats.EventReport:        {zerolog.WarnLevel, "statistics file not written", []string{"errno"}},
	stats.EventSoftcap:       {zerolog.WarnLevel, "soft cap exceeded", []string{"tier", "bytes"}},
	stats.EventHardcap:       {zerolog.WarnLevel, "hard cap reached", []string{"tier", "bytes"}},
	stats.EventMigrate:       {zerolog.DebugLevel, "span moved", []string{"tier", "bytes"}},
	stats.EventStuck:         {zerolog.InfoLevel, "span not moved", []string{"tier", "bytes"}},
	stats.EventDriverMissing: {zerolog.WarnLevel, "no CUDA driver is loaded", nil},
	stats.EventDriverOld: {zerolog.WarnLevel,
		"the CUDA driver is too old: device memory is not managed", nil},
	stats.EventDriverFails: {zerolog.WarnLevel, "the CUDA driver does not start",
		[]string{"error"}},
	stats.EventDeviceSoftcap: {zerolog.WarnLevel, "device soft cap exceeded",
		[]string{"device", "bytes"}},
	stats.EventDeviceHardcap: {zerolog.WarnLevel, "no device memory", []string{"device", "bytes"}},
	stats.EventDevicePlain: {zerolog.WarnLevel,
		"no managed memory: the device heap has plain memory",
		[]string{"device", "error"}},
	stats.EventDeviceFree: {zerolog.WarnLevel, "invalid free: not a block of a device",
		[]string{"address", "error"}},
	stats.EventSummary: {zerolog.InfoLevel, "summary",
		[]string{"malloc_calls", "free_calls", "bytes_peak", "bytes_live", "blocks_live",
			"calls_failed"}},
}

func write(log zerolog.Logger, e *stats.Event) {
	s := shapes[e.Kind]
	line := at(log.WithLevel(s.level), time.Unix(0, int64(e.UnixNs))).
		Int("pid", syscall.Getpid()).Uint64("tid", e.Tid)
	for i, name := range s.args {
		switch name {
		case "heap", "address":
			line = line.Str(name, fmt.Sprintf("%#x", e.Args[i]))
		case "tier":
			line = line.Str(name, config.TierWord(uint32(e.Args[i])))
		default:
			line = line.Uint64(name, e.Args[i])
		}
	}
	line.Msg(s.message)
}
