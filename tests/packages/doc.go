// Package packages tests what ./build.sh package leaves in build/packages.
package packages
