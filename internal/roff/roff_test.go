package roff

import "testing"

func TestPage(t *testing.T) {
	p := New(Names{[]string{"a-b", "c"}, 3, "does it", "2026-01-02", "it 1.0"})
	p.Section("Description")
	p.Text("It's\n.so\nwith \\n.\n\n  kept   it\n    more\n\n  last\nThen.")
	p.Item(`--x "Y"`, "Text-ual.")
	p.SeeAlso("d(1)", "e(7)")
	want := `.TH "a\-b" 3 2026-01-02 "it 1.0"
.nh
.ad l
.SH "NAME"
a\-b, c \- does it
.SH "DESCRIPTION"
It\(aqs
\&.so
with \en.
.PP
.RS 4
.nf
kept   it
  more
\&
last
.fi
.RE
.PP
Then.
.TP
.B "\-\-x \(dqY\(dq"
Text\-ual.
.SH "SEE ALSO"
.BR "d" (1),
.BR "e" (7)
`
	if got := string(p.Bytes()); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}
