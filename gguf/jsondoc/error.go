package jsondoc

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ReadError says in our words what the library found wrong with a text that it read: at
// which byte, and where in the document in the form of RFC 6901. An error of what the text
// comes from, and one that is not the library's, comes as it was.
func ReadError(err error) error {
	var value *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case errors.As(err, &value):
		return fmt.Errorf("JSON, byte %d: %w", value.ByteOffset, writeError(err))
	case errors.As(err, &syntax):
		return fmt.Errorf("JSON, byte %d: %w", syntax.ByteOffset, writeError(err))
	}
	return writeError(err)
}

// writeError says in our words why the library did not write a value, and where that has
// its place.
func writeError(err error) error {
	var value *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &value):
		return misfit(value)
	case errors.As(err, &syntax) && syntax.Err == jsontext.ErrDuplicateName:
		return fmt.Errorf("%skey %s stands twice", within(syntax.JSONPointer.Parent()), describeText(syntax.JSONPointer.LastToken()))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s%w", within(syntax.JSONPointer), syntax.Err)
	case strings.HasPrefix(err.Error(), "jsontext: ") && errors.Unwrap(err) != nil: // of what it reads from or writes to
		return errors.Unwrap(err)
	}
	return err
}

// misfit says why a value does not fit where it stands.
func misfit(value *json.SemanticError) error {
	switch place := value.JSONPointer; {
	case value.Err == json.ErrUnknownName:
		return fmt.Errorf("%sunknown field %s", within(place.Parent()), describeText(place.LastToken()))
	case value.Err != nil:
		return fmt.Errorf("%s%w", within(place), value.Err)
	default:
		return fmt.Errorf("%s%s does not belong here", within(place), kindNames[value.JSONKind])
	}
}

var kindNames = map[jsontext.Kind]string{
	0: "this value", 'n': "null", 't': "true", 'f': "false", '"': "a string", '0': "a number", '{': "an object", '[': "a list",
}

// within names a place in a document, for what stands before a message.
func within(place jsontext.Pointer) string {
	if place == "" {
		return ""
	}
	return "at " + describeText(string(place)) + ": "
}
