// Package sigstore holds signatures that the project makes to what sigstore-go, a library that
// nobody here wrote, says of them. It is a module of its own, since that library brings 80
// others.
package sigstore
