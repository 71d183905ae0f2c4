package main

import (
	"time"

	"tieralloc/stats"
)

// profileWait is how long a process is given to write its profile.
const profileWait = 10 * time.Second

var profileRequest = request{what: stats.AskProfile, thing: "profile", variable: "TA_PROFILE",
	without: "takes no profile: start it with TA_PROFILE=FILE (and without TA_SECURE=1)",
	ended:   "the file that TA_PROFILE names has its profile if it was not killed"}

// openProfile reads a profile: of a file, or of a running process by its number.
func openProfile(name string, wait time.Duration) (*profileFile, error) {
	pid, ok := processNumber(name)
	if !ok {
		return readProfile(name)
	}
	a, err := profileRequest.ask(pid, wait)
	if err != nil {
		return nil, err
	}
	return readAnswer(pid, a, readProfile, func(f *profileFile) { f.path = a.path })
}
