// Package programs holds black-box tests only. Each runs real programs twice,
// plain and with the library preloaded, and compares standard output, standard
// error and exit status byte for byte. There are no output filters: a command
// whose output changes from run to run does not belong here.
//
// Of the programs that people asked for, Debian has no Electron: TestZygote has its way
// of making a sandbox, and Chromium is the browser in it.
package programs
