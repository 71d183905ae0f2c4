package main

import "fmt"

// Exit statuses. `run` returns the command's own, or statuses as those of env, nice and timeout.
const (
	statusFailed      = 1
	statusUsage       = 2
	statusUnavailable = 69 // EX_UNAVAILABLE of sysexits.h
	statusConfig      = 78 // EX_CONFIG of sysexits.h, as the library's TA_STRICT
	statusRunFailed   = 125
	statusNotRunnable = 126
	statusNotFound    = 127
	statusSignal      = 128 // and the signal's number
)

// failure is an error with its exit status. If err is nil, the message was printed already.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string {
	if f.err == nil {
		return "failed"
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// usage returns an error in the arguments.
func usage(format string, args ...any) error {
	return &failure{statusUsage, fmt.Errorf(format, args...)}
}
