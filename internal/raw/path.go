package raw

// BaseName returns the part of the path, a C string, after its last slash, and its length.
func BaseName(path uintptr) (name, n uintptr) {
	name = path
	for ; LoadByte(path) != 0; path++ {
		if LoadByte(path) == '/' {
			name = path + 1
		}
	}
	return name, path - name
}
