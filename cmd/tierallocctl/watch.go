package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
)

// newPicture moves a terminal to its upper left and clears it.
const newPicture = "\x1b[H\x1b[2J"

// watch shows something again and again, until show says that it does not change any more
// or fails: on a terminal each time in place of the last, else below it after an empty line.
// It ends without a failure when the process that it showed has gone.
func watch(w io.Writer, interval time.Duration,
	show func(io.Writer) (alive bool, err error)) error {
	file, ok := w.(*os.File)
	terminal := ok && isatty.IsTerminal(file.Fd())
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
