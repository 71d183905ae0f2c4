// Package programs holds black-box tests only. Each runs real programs twice,
// plain and with the library preloaded, and compares standard output, standard
// error and exit status byte for byte. There are no output filters: a command
// whose output changes from run to run does not belong here.
package programs
