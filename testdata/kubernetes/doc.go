// Package kubernetes holds the Jobs of the page about many machines to the types of
// Kubernetes, and runs what they run. It is a module of its own, since those types bring
// others.
package kubernetes
