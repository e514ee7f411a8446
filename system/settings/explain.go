package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

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
	kind := e.GetFlag().Value.Type()
	number := "a number"
	switch {
	case strings.HasPrefix(kind, "uint"):
		number = "a whole number, 0 or more"
	case strings.HasPrefix(kind, "int"), kind == "count":
		number = "a whole number"
	}
	_, isNumber := errors.AsType[*strconv.NumError](e)
	switch {
	case kind == "bool":
		return "must be true or false"
	case isNumber && errors.Is(e, strconv.ErrRange):
		return "is out of range: must be " + number
	case isNumber:
		return "must be " + number
	case kind == "duration":
		return "must be a length of time such as 500ms, 10s or 2m"
	}
	return e.Unwrap().Error()
}
