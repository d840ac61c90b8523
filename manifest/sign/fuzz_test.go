package sign

import (
	"testing"
	"time"
)

// FuzzParse reads arbitrary bytes as each kind of document. Nothing may panic, and nothing that
// is accepted may lack what its methods promise.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"h"}},"dsseEnvelope":{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AA=="}]}}`))
	f.Add([]byte(`{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AA==","keyid":""}]}`))
	f.Add([]byte("me@example.com namespaces=\"x\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJKKuNrKz4FZ7hY0f6n0m0JbXkXw6yqEJmXb9nq0sL0P\n"))
	f.Add([]byte("-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if b, err := ParseBundle(text); err == nil {
			if m, err := b.Unchecked(); err == nil && (len(m.Resources) == 0 || m.validate() != nil) {
				t.Errorf("a list that is not valid was accepted: %+v", m)
			}
		}
		if e, err := ParseEnvelope(text); err == nil {
			e.KeyID()
			e.IsSSH()
			if p, err := e.Unchecked(); err == nil {
				p.Compare(p.Files, p.Parameters)
			}
		}
		if s, err := ParseSSH(text); err == nil {
			s.Fingerprint()
			if s.Check([]byte("another message")) == nil {
				t.Error("a signature of another message was accepted")
			}
		}
		if list, err := ReadSigners(text, time.UTC); err == nil && len(list) == 0 {
			t.Error("no signers were accepted")
		}
	})
}
