// Package chaos kills, starves and disturbs the built program while it writes a release, and
// goes on until the release is whole. Its tests print what was survived; "make chaos" repeats
// them many times.
package chaos
