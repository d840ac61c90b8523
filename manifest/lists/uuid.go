package lists

import (
	"crypto/sha1"
	"hash"
)

// uuidNamespace is that of llama-gguf-hash, ef001206-dadc-5f6d-a15f-3359e577d4e5: itself the
// UUIDv5 of the address "en.wikipedia.org/wiki/Llama.cpp".
var uuidNamespace = []byte{0xef, 0x00, 0x12, 0x06, 0xda, 0xdc, 0x5f, 0x6d, 0xa1, 0x5f, 0x33, 0x59, 0xe5, 0x77, 0xd4, 0xe5}

// uuidSize is the bytes of a UUID.
const uuidSize = 16

// A uuid is the UUIDv5 of RFC 9562 as a hash: the first 16 bytes of a SHA-1 over the
// namespace and the data, with version 5 and the variant in their places.
type uuid struct{ hash.Hash }

func newUUID() hash.Hash {
	u := uuid{sha1.New()}
	u.Write(uuidNamespace)
	return u
}

// Size returns the bytes of a UUID.
func (u uuid) Size() int { return uuidSize }

// Reset begins anew, behind the namespace.
func (u uuid) Reset() {
	u.Hash.Reset()
	u.Write(uuidNamespace)
}

// Sum appends the UUID of what was written to b.
func (u uuid) Sum(b []byte) []byte {
	id := u.Hash.Sum(nil)[:uuidSize]
	id[6] = id[6]&0x0f | 5<<4
	id[8] = id[8]&0x3f | 0x80
	return append(b, id...)
}
