// Package docs holds the documents to the tree: links lead somewhere, pages keep their size, and
// the version is the same wherever it stands.
package docs
