package seckill

import (
	"strings"
	"testing"
	"time"
)

const sampleTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestTraceContextsAreTakenWholeOrNotAtAll(t *testing.T) {
	if got := ParseTraceparent(sampleTrace); got != sampleTrace || got.TraceID() != "4bf92f3577b34da6a3ce929d0e0e4736" ||
		got.SpanID() != "00f067aa0ba902b7" || !got.Sampled() {
		t.Errorf("got %q", got)
	}
	for _, text := range []string{"", "00", sampleTrace + "0", sampleTrace[:54], "01" + sampleTrace[2:], strings.ToUpper(sampleTrace), strings.Replace(sampleTrace, "-", "_", 2),
		"00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", strings.Replace(sampleTrace, "4", "\n", 1)} {
		if got := ParseTraceparent(text); got != "" {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
	for flags, want := range map[string]bool{"00": false, "01": true, "02": false, "03": true, "0f": true, "0a": false, "ff": true} {
		if got := Traceparent(sampleTrace[:53] + flags).Sampled(); got != want {
			t.Errorf("flags %s: sampled is %v", flags, got)
		}
	}
}

// R7.7.4 R8.3.1: whoever sends a reservation's message gives it the same trace.
func TestATraceIsAFunctionOfItsReservation(t *testing.T) {
	ids := NewIDGenerator(time.Now, [32]byte{1})
	seen := make(map[string]bool)
	const n = 2000
	below := 0
	for range n {
		id := ids.NewReservationID()
		trace := TraceOf(id, true)
		if ParseTraceparent(string(trace)) != trace || !trace.Sampled() || trace != TraceOf(id, true) {
			t.Fatalf("%s: %q", id, trace)
		}
		if off := TraceOf(id, false); off.Sampled() || off[:53] != trace[:53] {
			t.Fatalf("%s: %q and %q", id, off, trace)
		}
		if seen[trace.TraceID()] || seen[trace.SpanID()] {
			t.Fatalf("%s: an id of %q is another's, too", id, trace)
		}
		seen[trace.TraceID()], seen[trace.SpanID()] = true, true
		if child := Traceparent(sampleTrace).Child(id, false); child.TraceID() != sampleTrace[3:35] || child.SpanID() != trace.SpanID() || child.Sampled() {
			t.Fatalf("child is %q", child)
		}
		if Traceparent("").Child(id, true) != trace {
			t.Fatal("without a parent the trace is the reservation's")
		}
	}
	for range n {
		id := ids.NewReservationID()
		share := Traceparent("").ShareWith(id)
		if own := TraceOf(id, true); own.ShareWith("") != share || own.ShareWith(ids.NewReservationID()) != share {
			t.Fatalf("%s: a child of its trace has another share", id)
		}
		if share < 0 || share >= 1 {
			t.Fatalf("share is %v", share)
		}
		if share < .25 {
			below++
		}
	}
	if below < n/8 || below > n/2 {
		t.Errorf("%d of %d are in the first quarter", below, n)
	}
	for _, id := range []string{"", "resv_", "msg_01J00000000000000000000000", "resv_01j00000000000000000000000"} {
		if got := TraceOf(id, true); got != "" {
			t.Errorf("%q has trace %q", id, got)
		}
	}
	if Traceparent("").ShareWith("") != 1 || Traceparent("nonsense").ShareWith("") != 1 {
		t.Error("no trace is in no share")
	}
}
