package seckill

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestCodesKeepNumberNameAndStatus(t *testing.T) {
	var b strings.Builder
	for _, c := range Codes() {
		fmt.Fprintf(&b, "%d %s %d accepted=%v decision=%v\n", c, c, c.HTTPStatus(), c.Accepted(), c.Decision())
	}
	want, err := os.ReadFile("testdata/codes.txt")
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("codes are now\n%swant\n%s", b.String(), want)
	}
}

func TestEveryCodeIsReadBack(t *testing.T) { // R9.1.2
	for _, c := range Codes() {
		text, err := c.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back Code
		if err := back.UnmarshalText(text); err != nil || back != c {
			t.Errorf("%s came back as %v, %v", c, back, err)
		}
		if parsed, ok := ParseCode(c.String()); !ok || parsed != c {
			t.Errorf("ParseCode(%q) is %v, %v", c, parsed, ok)
		}
	}
}

func TestANumberThatIsNoCodeIsAnError(t *testing.T) { // R9.1.2
	c := Code(200)
	if _, err := c.MarshalText(); err == nil || c.HTTPStatus() != 500 || c.String() != "Code(200)" || c.Accepted() {
		t.Errorf("%v %d %v", c, c.HTTPStatus(), err)
	}
	if err := c.UnmarshalText([]byte("NEW_CODE")); err == nil {
		t.Error("an unknown name was read")
	}
	if _, ok := ParseCode(""); ok {
		t.Error("the empty name is a code")
	}
}
