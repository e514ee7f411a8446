package seckill

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestValidateNamesTheFirstWrongField(t *testing.T) { // R9.1.1
	good := SubmitCommand{ActivityID: 7, SKUID: 11, UserID: 1, RequestID: "r_1-A.b", Quantity: 1}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		field string
		spoil func(*SubmitCommand)
	}{
		"no activity":        {"activity_id", func(c *SubmitCommand) { c.ActivityID = 0 }},
		"negative SKU":       {"sku_id", func(c *SubmitCommand) { c.SKUID = -1 }},
		"no quantity":        {"quantity", func(c *SubmitCommand) { c.Quantity = 0 }},
		"quantity two":       {"quantity", func(c *SubmitCommand) { c.Quantity = 2 }},
		"no request id":      {"request_id", func(c *SubmitCommand) { c.RequestID = "" }},
		"a long request id":  {"request_id", func(c *SubmitCommand) { c.RequestID = strings.Repeat("a", 65) }},
		"a space in it":      {"request_id", func(c *SubmitCommand) { c.RequestID = "a b" }},
		"a brace in it":      {"request_id", func(c *SubmitCommand) { c.RequestID = "a}" }},
		"beyond ASCII in it": {"request_id", func(c *SubmitCommand) { c.RequestID = "é" }},
	} {
		cmd := good
		c.spoil(&cmd)
		var fe *FieldError
		if err := cmd.Validate(); !errors.As(err, &fe) || fe.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPayloadHashKeepsItsFormat(t *testing.T) { // R7.9.2
	c := SubmitCommand{ActivityID: 7, SKUID: 11, UserID: 1000, Quantity: 1}
	const want = "6b5de241d4e062f959c1daaeb5580ee1f00a4b3f552c7ed09bffd93b43096772"
	if got := c.PayloadHash(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestPayloadHashesAreEqualExactlyWhenPayloadsAre(t *testing.T) { // R7.9.2
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 12)
		draw := func() SubmitCommand {
			return SubmitCommand{ActivityID: n.Draw(t, "a"), SKUID: n.Draw(t, "s"), UserID: n.Draw(t, "u"), Quantity: n.Draw(t, "q"),
				RequestID: rapid.StringMatching("[a-z]{1,3}").Draw(t, "r")}
		}
		a, b := draw(), draw()
		same := a.ActivityID == b.ActivityID && a.SKUID == b.SKUID && a.UserID == b.UserID && a.Quantity == b.Quantity
		if (a.PayloadHash() == b.PayloadHash()) != same {
			t.Fatalf("%+v and %+v", a, b)
		}
	})
}

func TestKeysShareOneSlotAndKeepTheirNames(t *testing.T) { // R8.1.1-7
	k := KeysOf(7, 11)
	for got, want := range map[string]string{
		k.Meta():             "seckill:{7:11}:meta",
		k.Stock():            "seckill:{7:11}:stock",
		k.SoldOut():          "seckill:{7:11}:soldout",
		k.Pending():          "seckill:{7:11}:resv:pending",
		k.Log():              "seckill:{7:11}:log",
		k.User(5):            "seckill:{7:11}:user:5",
		k.Request("r1"):      "seckill:{7:11}:req:r1",
		k.Reservation("r_A"): "seckill:{7:11}:resv:r_A",
	} {
		if got != want || !strings.HasPrefix(got, k.Prefix()) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
