package main

import (
	"bytes"
	"os"
	"testing"
)

func TestHeaderIsCurrent(t *testing.T) {
	var want bytes.Buffer
	write(&want)
	got, err := os.ReadFile("../../interpose/layout.h")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("interpose/layout.h is not what the Go types say: run go generate " +
			"./internal/layout")
	}
}
