package verify

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hotsku/hotsku/system/seckill"
	"github.com/hotsku/hotsku/verify/rundir"
)

const deadTopic = rundir.DeadLetterPrefix + seckill.GroupOrder

// park adds a message to a topic that no build can read.
func (w *world) park(topic string, body string) *rundir.Message {
	m := rundir.Message{Topic: topic, BodyBytes: []byte(body)}
	if topic == seckill.TopicOrderCreate {
		m.Offset = w.offsets[0].Max
		w.offsets[0].Max, w.offsets[0].Consumed = m.Offset+1, m.Offset+1
	}
	w.messages = append(w.messages, m)
	return &w.messages[len(w.messages)-1]
}

func (w *world) keep(m *rundir.Message) *rundir.DeadLetterRow {
	w.letters = append(w.letters, rundir.DeadLetterRow{Topic: m.Topic, Queue: m.Queue, Offset: m.Offset, Class: "poison", Reason: "no JSON", Body: fmt.Sprintf(`\x%x`, m.BodyBytes)})
	return &w.letters[len(w.letters)-1]
}

// deadLies are about what the broker holds and nobody did.
func deadLies() []lie {
	return []lie{
		{"a poison message dropped", "I12", func(w *world) string {
			m := w.park(seckill.TopicOrderCreate, "no json")
			return fmt.Sprintf("a create message that was consumed must be decided or kept as a dead letter, and the one of %s queue 0 offset %d is neither (nobody can read it): -1", m.Topic, m.Offset)
		}},
		{"a message given up that nobody kept", "I12", func(w *world) string {
			w.park(deadTopic, "no json")
			return fmt.Sprintf("a message that the broker gave up must be kept as a dead letter, and the one of %s queue 0 offset 0 is not: -1", deadTopic)
		}},
		{"a message consumed and never decided", "I12 I4 I9 I15", func(w *world) string {
			r := w.rejected()
			id := r.ReservationID
			m := w.messages[slices.IndexFunc(w.messages, func(m rundir.Message) bool { return m.Keys == id })]
			w.reservations = slices.DeleteFunc(w.reservations, func(r rundir.ReservationRow) bool { return r.ReservationID == id })
			return fmt.Sprintf("queue 0 offset %d is neither (reservation %s", m.Offset, id)
		}},
		{"a letter of no class", "I12", func(w *world) string {
			w.keep(w.park(seckill.TopicOrderCreate, "no json")).Class = "odd"
			return `says class "odd", reason "no JSON"`
		}},
		{"more consumed than stored", "I12", func(w *world) string {
			w.offsets[0].Consumed += 3
			return fmt.Sprintf("group %s can have consumed %d messages of %s queue 0, and says it consumed %d: +3",
				seckill.GroupOrder, w.offsets[0].Max, seckill.TopicOrderCreate, w.offsets[0].Consumed)
		}},
		{"a panic", "I12", func(w *world) string {
			ev := &w.timeline[len(w.timeline)-1]
			ev.Hits, ev.Detail = map[string]int64{HitPanics: 2}, "panic: nil map"
			return "no process may panic, and access-1 did 2 times: panic: nil map: +2"
		}},
	}
}

func TestEveryLieAboutADeadMessageIsFound(t *testing.T) {
	for _, l := range deadLies() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			l.mustBeFound(t, healthyWorld())
		})
	}
}

// What was kept is not dead silently, wherever it lay when it was kept.
func TestWhatIsKeptIsNotDeadSilently(t *testing.T) {
	w := healthyWorld()
	w.keep(w.park(seckill.TopicOrderCreate, "no json"))
	w.keep(w.park(deadTopic, "sent back"))
	w.park(seckill.TopicOrderCreate, "sent back") // where it lay first
	w.letters[0].Topic = "run7_" + w.letters[0].Topic
	if run := w.judged(t); run.ExitCode != ExitPass {
		t.Errorf("%q", run.Reasons)
	}
}

func TestLogsThatNobodySearchedAreNotChecked(t *testing.T) {
	w := healthyWorld()
	w.timeline = w.timeline[:1]
	if inv := statusOf(w.judged(t), "I12"); inv.Status != rundir.StatusNotChecked || inv.Witness[0] != "timeline.jsonl: nobody searched the processes' logs for panics" {
		t.Errorf("%+v", inv)
	}
}
