package rundir

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// EvidenceError says that evidence is missing, truncated or unreadable: what
// depends on it is not checked.
type EvidenceError struct {
	File   string
	Offset int64 // bytes read before the fault, -1 if not meaningful
	Reason string
}

func (e *EvidenceError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("%s: %s at byte %d", e.File, e.Reason, e.Offset)
}

// AlteredError says that a row file is whole but not as it was written: rows
// were removed or added, or, where the counts agree, a row was changed. Its
// rows can be judged.
type AlteredError struct {
	File            string
	Found, Recorded int64
}

func (e *AlteredError) Error() string {
	if e.Found == e.Recorded {
		return fmt.Sprintf("%s: its %d records are not as they were written: their checksum is another", e.File, e.Found)
	}
	return fmt.Sprintf("%s: holds %d records, its trailer says %d", e.File, e.Found, e.Recorded)
}

// WriteJSON writes v as indented JSON, whole or not at all: to a temporary
// file, synced, then renamed.
func WriteJSON(path string, v any) error {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return WriteFile(path, append(body, '\n'))
}

// WriteFile writes body to path, whole or not at all, making its folder.
func WriteFile(path string, body []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	_, werr := f.Write(body)
	if err := errors.Join(werr, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// ReadJSON reads a file written by WriteJSON. A file that is missing, empty or
// cut, holds a field v does not know, or goes on after its value is an
// *EvidenceError.
func ReadJSON(path string, v any) error {
	body, err := os.ReadFile(path)
	if err != nil {
		return &EvidenceError{path, -1, reasonOf(err)}
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return &EvidenceError{path, 0, "is empty"}
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return &EvidenceError{path, int64(len(body)), "is truncated"}
		}
		return &EvidenceError{path, dec.InputOffset(), "cannot be read: " + err.Error()}
	}
	end := dec.InputOffset()
	if len(bytes.TrimSpace(body[end:])) > 0 {
		return &EvidenceError{path, end, "has data after its end"}
	}
	return nil
}

// Recognise says in an error why d is no run directory: it is no folder, or
// holds nothing that a run leaves.
func (d Dir) Recognise() error {
	info, err := os.Stat(string(d))
	switch {
	case err != nil:
		return &EvidenceError{string(d), -1, reasonOf(err)}
	case !info.IsDir():
		return &EvidenceError{string(d), -1, "is no run directory, but a file"}
	}
	for _, path := range []string{d.Plan(), d.History(), d.Timeline(), d.Stores(), d.Run()} {
		if _, err := os.Lstat(path); err == nil {
			return nil
		}
	}
	return &EvidenceError{string(d), -1, "is no run directory: plan.json, history, timeline.jsonl, stores and run.json are missing"}
}

// ReadPlan reads and checks plan.json.
func (d Dir) ReadPlan() (*Plan, error) {
	var p Plan
	if err := ReadJSON(d.Plan(), &p); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, &EvidenceError{d.Plan(), -1, err.Error()}
	}
	return &p, nil
}

// ReadSnapshot reads and checks stores/snapshot.json.
func (d Dir) ReadSnapshot() (*Snapshot, error) {
	var s Snapshot
	if err := ReadJSON(d.Snapshot(), &s); err != nil {
		return nil, err
	}
	if s.Schema != SnapshotSchema {
		return nil, &EvidenceError{d.Snapshot(), -1, fmt.Sprintf("has schema %d, this build reads %d", s.Schema, SnapshotSchema)}
	}
	return &s, nil
}

// ReadRun reads and checks run.json.
func (d Dir) ReadRun() (*Run, error) {
	var r Run
	if err := ReadJSON(d.Run(), &r); err != nil {
		return nil, err
	}
	if r.Schema != RunSchema {
		return nil, &EvidenceError{d.Run(), -1, fmt.Sprintf("has schema %d, this build reads %d", r.Schema, RunSchema)}
	}
	if !slices.Contains([]string{VerdictPass, VerdictFail, VerdictInconclusive}, r.Verdict) {
		return nil, &EvidenceError{d.Run(), -1, fmt.Sprintf("gives the verdict %q, which is none", r.Verdict)}
	}
	return &r, nil
}

type trailer struct {
	EOF     bool   `json:"eof"`
	Records int64  `json:"records"`
	CRC32C  uint32 `json:"crc32c"` // of all bytes before the trailer
}

// line is the trailer as it is written.
func (t trailer) line() []byte {
	return fmt.Appendf(nil, "{\"eof\":%t,\"records\":%d,\"crc32c\":%d}\n", t.EOF, t.Records, t.CRC32C)
}

func newChecksum() hash.Hash32 { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

// RowWriter writes a row file. Not safe for concurrent use.
type RowWriter struct {
	path    string
	f       *os.File
	w       *bufio.Writer
	enc     *json.Encoder
	sum     hash.Hash32
	records int64
}

// CreateRows starts a row file, making its folder.
func CreateRows(path string) (*RowWriter, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	w := bufio.NewWriterSize(f, 1<<16)
	sum := newChecksum()
	enc := json.NewEncoder(io.MultiWriter(w, sum))
	enc.SetEscapeHTML(false)
	return &RowWriter{path: path, f: f, w: w, enc: enc, sum: sum}, nil
}

// Write appends one row.
func (w *RowWriter) Write(row any) error {
	if err := w.enc.Encode(row); err != nil {
		return fmt.Errorf("write %s: %w", w.path, err)
	}
	w.records++
	return nil
}

// Flush makes the rows so far readable by others (timeline.jsonl is followed
// while a run goes on).
func (w *RowWriter) Flush() error { return w.w.Flush() }

// Close writes the trailer and syncs. A file that was not closed counts as
// truncated.
func (w *RowWriter) Close() error {
	_, err := w.w.Write(trailer{true, w.records, w.sum.Sum32()}.line())
	if err := errors.Join(err, w.w.Flush(), w.f.Sync(), w.f.Close()); err != nil {
		return fmt.Errorf("close %s: %w", w.path, err)
	}
	return nil
}

// Abort closes the file without its trailer.
func (w *RowWriter) Abort() { _ = errors.Join(w.w.Flush(), w.f.Close()) }

// Rows streams the rows of a row file. The sequence ends after the first
// error: an *EvidenceError where the file is missing, cut, unreadable or goes
// on after its trailer, or, after all rows, an *AlteredError where count or
// checksum are not the trailer's.
func Rows[T any](path string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		fail := func(err error) { yield(zero, err) }
		f, err := os.Open(path)
		if err != nil {
			fail(&EvidenceError{path, -1, reasonOf(err)})
			return
		}
		defer f.Close()
		r := bufio.NewReaderSize(f, 1<<16)
		sum := newChecksum()
		var at, records int64
		for {
			line, err := r.ReadBytes('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				fail(&EvidenceError{path, at, err.Error()})
				return
			}
			if err != nil {
				fail(&EvidenceError{path, at + int64(len(line)), "is truncated: no trailer"})
				return
			}
			if bytes.HasPrefix(line, []byte(`{"eof":true`)) {
				var t trailer
				if err := json.Unmarshal(line, &t); err != nil {
					fail(&EvidenceError{path, at, "trailer cannot be read: " + err.Error()})
					return
				}
				end := at + int64(len(line))
				switch _, err := r.ReadByte(); {
				case err == nil:
					fail(&EvidenceError{path, end, "has data after its trailer"})
				case !errors.Is(err, io.EOF):
					fail(&EvidenceError{path, end, err.Error()})
				case t.Records != records || t.CRC32C != sum.Sum32():
					fail(&AlteredError{path, records, t.Records})
				case !bytes.Equal(line, t.line()):
					fail(&EvidenceError{path, at, "trailer is not as it was written"})
				}
				return
			}
			var row T
			if err := json.Unmarshal(line, &row); err != nil {
				fail(&EvidenceError{path, at, "row cannot be read: " + err.Error()})
				return
			}
			sum.Write(line)
			at += int64(len(line))
			records++
			if !yield(row, nil) {
				return
			}
		}
	}
}

func reasonOf(err error) string {
	if errors.Is(err, os.ErrNotExist) {
		return "is missing"
	}
	var pe *os.PathError
	if errors.As(err, &pe) {
		return "cannot be opened: " + pe.Err.Error()
	}
	return err.Error()
}
