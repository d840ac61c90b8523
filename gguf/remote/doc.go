// Package remote reads files by ranges over HTTP, from the Hugging Face hub and from any
// other server that serves ranges. A [File] is an [io.ReaderAt] with an identity: what is
// read belongs to the one file that was found first, or the read is an error.
//
// The package knows nothing of what the files hold. It reads no environment variable and
// prints nothing. Where it says "the hub", it means the server that [Options.Endpoint]
// names, or a mirror of it; see https://huggingface.co/docs/hub/api.
//
// The token goes to the hub's own host over https and nowhere else. Redirects are followed
// by hand, at most maxHops of them, never from https to http. Queries of addresses, which
// can be signatures, are in no message.
package remote
