// Package hostile gives the built program files and folders that were made to do harm, and
// holds it to its memory and its time.
package hostile
