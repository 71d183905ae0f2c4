package main

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

// newPicture moves the cursor to the upper left of a terminal and clears it.
const newPicture = "\x1b[H\x1b[2J"

// watch calls show at each interval, until show fails or says that its output will not change any
// more. On a terminal each output replaces the last. Otherwise it follows the last after an empty
// line. If show fails after the first time, because the process has ended, watch does not fail.
func watch(w io.Writer, interval time.Duration,
	show func(io.Writer) (alive bool, err error)) error {
	terminal := isTerminal(w)
	for n := 0; ; n++ {
		var text bytes.Buffer
		switch {
		case terminal:
			text.WriteString(newPicture)
		case n > 0:
			text.WriteByte('\n')
		}
		alive, err := show(&text)
		if err != nil && n > 0 {
			_, err = fmt.Fprintf(w, "ended: %s\n", printable(err.Error()))
			return err
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(text.Bytes()); err != nil || !alive {
			return err
		}
		time.Sleep(interval)
	}
}
