package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tieralloc/internal/version"
)

const description = `memory allocator with tiers, to preload or to link with
A heap that serves every malloc, free and new of unmodified programs, and
CUDA device memory. It places memory in three tiers, holds each tier to its
limits, and writes a report when the program ends. The package holds the
library, its header, and the tool tierallocctl.`

// content is a file of a package in nfpm's configuration. The source of a link is its target.
type content struct {
	Source      string `json:"src,omitempty"`
	Destination string `json:"dst"`
	Type        string `json:"type,omitempty"`
}

// writeConfig writes the configuration by which nfpm packs a staged tree.
func writeConfig(work, packager string) error {
	files, err := contents(filepath.Join(work, packager))
	if err != nil {
		return err
	}
	if packager == "rpm" {
		markDocs(files)
		files = append(files, docDirs(files)...)
	}
	config := map[string]any{
		"name":             "tieralloc",
		"arch":             "amd64",
		"platform":         "linux",
		"version":          version.Number,
		"release":          debianRevision,
		"section":          "utils",
		"priority":         "optional",
		"maintainer":       maintainer(),
		"description":      description,
		"license":          "Apache-2.0",
		"disable_globbing": true,
		"contents":         files,
	}
	switch packager {
	case "deb":
		config["depends"] = []string{fmt.Sprintf("libc6 (>= 2.%d)", glibc)}
		config["provides"] = []string{
			fmt.Sprintf("libtieralloc1 (= %s-%s)", version.Number, debianRevision),
			fmt.Sprintf("libtieralloc-dev (= %s-%s)", version.Number, debianRevision),
		}
		config["deb"] = map[string]any{
			"triggers": map[string]any{"activate_noawait": []string{"ldconfig"}},
		}
	case "rpm":
		config["depends"] = []string{fmt.Sprintf("libc.so.6(GLIBC_2.%d)(64bit)", glibc)}
		config["provides"] = []string{"libtieralloc.so.1()(64bit)"}
		// Packages do not contain the name of the machine that made them.
		config["rpm"] = map[string]any{"buildhost": "localhost", "packager": maintainer()}
	}
	text, err := json.MarshalIndent(config, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, packager+".json"), text, 0o644)
}

// markDocs sets the types by which rpm recognises documents.
func markDocs(files []content) {
	for i, file := range files {
		if strings.HasPrefix(file.Destination, "/usr/share/doc/") {
			files[i].Type = "doc"
		}
		if filepath.Base(file.Destination) == "LICENSE" {
			files[i].Type = "license"
		}
	}
}

// docDirs are the folders of the documents: rpm removes those that a package owns. dpkg removes any
// that it leaves empty.
func docDirs(files []content) (dirs []content) {
	known := map[string]bool{}
	for _, file := range files {
		const top = "/usr/share/doc/tieralloc"
		dir := filepath.Dir(file.Destination)
		for ; strings.HasPrefix(dir, top) && !known[dir]; dir = filepath.Dir(dir) {
			known[dir] = true
			dirs = append(dirs, content{Destination: dir, Type: "dir"})
		}
	}
	return dirs
}

// contents lists the files and links of a tree. Folders are left to the packages that own them.
func contents(tree string) (files []content, err error) {
	err = filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file := content{Source: path, Destination: path[len(tree):]}
		if d.Type()&fs.ModeSymlink != 0 {
			file.Type = "symlink"
			file.Source, err = os.Readlink(path)
		}
		files = append(files, file)
		return err
	})
	return files, err
}
