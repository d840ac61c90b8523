// Package documents gives the built program lists, pins and plans of the largest size that is
// read, which are made to cost most, and holds it to its memory and its time.
package documents
