package testlib

import (
	"os"
	"syscall"
)

func signal(p *os.ProcessState) int {
	if ws, ok := p.Sys().(syscall.WaitStatus); ok {
		return int(ws.Signal())
	}
	return 0
}
