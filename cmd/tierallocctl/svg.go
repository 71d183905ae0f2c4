package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// svgElements is the elements of a picture.
type svgElements struct{ strings.Builder }

// write writes the picture. paint is for the background, and head comes before it.
func (e *svgElements) write(w io.Writer, width, height int, paint, head string) error {
	_, err := fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d"
 font-family="sans-serif" font-size="12">
%[3]s<rect width="%[1]d" height="%[2]d" %[4]s/>
%[5]s</svg>
`, width, height, head, paint, e.String())
	return err
}

// text writes text at a place.
func (e *svgElements) text(x, y int, style, text string) {
	fmt.Fprintf(e, `<text x="%d" y="%d" %s>`, x, y, style)
	e.escape(text)
	e.WriteString("</text>\n")
}

// escape writes text as it stands between tags.
func (e *svgElements) escape(text string) {
	_ = xml.EscapeText(e, []byte(text)) // a Builder does not fail
}
