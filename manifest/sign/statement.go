package sign

import (
	"crypto/ecdsa"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// What an envelope holds, and the kind of statement in it.
const (
	payloadType   = "application/vnd.in-toto+json"
	statementType = "https://in-toto.io/Statement/v1"
)

// maxDocument bounds signed documents: a release has thousands of files at most.
const maxDocument = 64 << 20

// A statement is in-toto's: a predicate about subjects.
type statement struct {
	Type          string         `json:"_type"`
	Subject       []subject      `json:"subject"`
	PredicateType string         `json:"predicateType"`
	Predicate     jsontext.Value `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// readStatement reads a statement of the wanted kind. Names that come twice, or differ in
// case from those wanted, are refused by the reader: two readers must not see two things.
func readStatement(payload []byte, predicateType string) (*statement, error) {
	var s statement
	if err := json.Unmarshal(payload, &s); err != nil {
		return nil, fmt.Errorf("the signed statement: %w", err)
	}
	if s.Type != statementType {
		return nil, fmt.Errorf("the signed statement is of type %q, want %q", s.Type, statementType)
	}
	if s.PredicateType != predicateType {
		return nil, fmt.Errorf("the signed statement has predicate type %q, want %q", s.PredicateType, predicateType)
	}
	return &s, nil
}

// writeStatement returns the bytes to sign.
func writeStatement(subjects []subject, predicateType string, predicate any) ([]byte, error) {
	body, err := json.Marshal(predicate, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return json.Marshal(statement{statementType, subjects, predicateType, body}, json.Deterministic(true))
}

// seal makes an envelope of a payload and its signature.
func seal(payload, signature []byte, keyID string) dsse.Envelope {
	return dsse.Envelope{
		PayloadType: payloadType,
		Payload:     base64.StdEncoding.EncodeToString(payload),
		Signatures:  []dsse.Signature{{KeyID: keyID, Sig: base64.StdEncoding.EncodeToString(signature)}},
	}
}

// unseal returns the payload of an envelope, its one signature, and the bytes that it signs.
func unseal(e *dsse.Envelope) (payload, signature, signed []byte, err error) {
	if e.PayloadType != payloadType {
		return nil, nil, nil, fmt.Errorf("the envelope holds %q, want %q", e.PayloadType, payloadType)
	}
	if n := len(e.Signatures); n != 1 {
		return nil, nil, nil, fmt.Errorf("the envelope has %d signatures, want one", n)
	}
	if payload, err = e.DecodeB64Payload(); err != nil {
		return nil, nil, nil, fmt.Errorf("the envelope's payload: %w", err)
	}
	if len(payload) == 0 {
		return nil, nil, nil, errors.New("the envelope is empty")
	}
	signature, err = base64.StdEncoding.DecodeString(e.Signatures[0].Sig)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("the envelope's signature: %w", err)
	}
	return payload, signature, dsse.PAE(e.PayloadType, payload), nil
}

// unsealSigned returns what an envelope holds if the key signed it.
func unsealSigned(e *dsse.Envelope, key *ecdsa.PublicKey) ([]byte, error) {
	payload, signature, signed, err := unseal(e)
	if err != nil {
		return nil, err
	}
	fits, err := verifyBytes(key, signed, signature)
	if err != nil {
		return nil, err
	}
	if !fits {
		return nil, ErrWrongSignature
	}
	return payload, nil
}

// marshalDocument writes a document as all of the program's are: two spaces, LF at the end.
func marshalDocument(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}
