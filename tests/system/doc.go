// Package system holds black-box tests of whole systems. TestSystem is of a Debian root in which
// every program has the library, by /etc/ld.so.preload; TestBare builds the library in one that has
// nothing but git; TestPackages installs the packages where neither Go nor gcc is; TestLaterGo
// builds the library with a later Go. They run only where TA_TEST_SYSTEM is set.
package system
