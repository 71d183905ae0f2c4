package config

import "tieralloc/internal/raw"

// TA_ONLY is a list of names of programs, separated by commas. Blanks around a name and empty names
// are ignored. A * at the end of a name stands for any text.

// isNames reports whether the value is such a list, with a name in it.
func (v value) isNames() bool {
	some := false
	for i := uintptr(0); i <= v.n; {
		end := v.find(i, ',')
		name := v.part(i, end).trim()
		i = end + 1
		if name.n == 0 {
			continue
		}
		some = true
		if name.find(0, '/') != name.n || name.find(0, '*') < name.n-1 {
			return false
		}
	}
	return some
}

// names reports whether the list has the name. Precondition: isNames.
func (v value) names(name value) bool {
	for i := uintptr(0); i <= v.n; {
		end := v.find(i, ',')
		if v.part(i, end).trim().isPatternOf(name) {
			return true
		}
		i = end + 1
	}
	return false
}

// isPatternOf reports whether the value is the name, or its beginning and a *.
func (v value) isPatternOf(name value) bool {
	if v.n == 0 {
		return false
	}
	n := v.n
	if v.at(n-1) == '*' {
		n--
		if name.n < n {
			return false
		}
	} else if name.n != n {
		return false
	}
	for i := uintptr(0); i < n; i++ {
		if v.at(i) != name.at(i) {
			return false
		}
	}
	return true
}

// Only reports whether the environment at envp, which may be 0, has a valid TA_ONLY. Parse reports
// an invalid one and turns the library off.
func Only(envp uintptr) bool { return envp != 0 && valueOf(envp, varOnly).isNames() }

// OnlyNames reports whether the environment's TA_ONLY names the file at path, a C string or 0.
// Precondition: Only.
func OnlyNames(envp, path uintptr) bool {
	if path == 0 {
		return false
	}
	name, n := raw.BaseName(path)
	return valueOf(envp, varOnly).names(value{name, n})
}
