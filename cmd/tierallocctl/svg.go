package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// svgElements is the elements of a picture.
type svgElements struct{ strings.Builder }

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
