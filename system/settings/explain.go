package settings

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
)

// Explain says in the user's words why a flag's value cannot be taken, not in
// those of the package that parsed it. Other errors are returned as they are.
func Explain(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	return fmt.Errorf("--%s %w", invalid.GetFlag().Name, refused(err))
}

// refused is Explain where the flag is named already, as a variable or a key.
func refused(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	return fmt.Errorf("%q: %s", invalid.GetValue(), wanted(invalid))
}

// wanted is what the flag takes.
func wanted(e *pflag.InvalidValueError) string {
	number := map[string]string{"int": "a whole number", "int64": "a whole number", "uint64": "a whole number, 0 or more"}
	kind := e.GetFlag().Value.Type()
	switch {
	case number[kind] != "" && errors.Is(e, strconv.ErrRange):
		return "is too large: must be " + number[kind]
	case number[kind] != "":
		return "must be " + number[kind]
	case kind == "duration":
		return "must be a length of time such as 500ms, 10s or 2m"
	case kind == "bool":
		return "must be true or false"
	}
	return e.Unwrap().Error()
}
