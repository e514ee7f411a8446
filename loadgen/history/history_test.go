package history_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hotsku/hotsku/loadgen/history"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func records() *rapid.Generator[history.Record] {
	return rapid.Custom(func(t *rapid.T) history.Record {
		return history.Record{
			N:        rapid.Uint64().Draw(t, "n"),
			Subject:  rapid.Uint64().Draw(t, "subject"),
			Ordinal:  rapid.Uint32().Draw(t, "ordinal"),
			Intended: rapid.Int64().Draw(t, "intended"),
			Sent:     rapid.Int64Min(history.Never).Draw(t, "sent"),
			Done:     rapid.Int64Min(history.Never).Draw(t, "done"),
			Status:   rapid.Uint16().Draw(t, "status"),
			Outcome:  history.Outcome(rapid.Uint8().Draw(t, "outcome")),
			Code:     rapid.Uint8().Draw(t, "code"),
			Tag:      [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "tag")),
		}
	})
}

func write(t testing.TB, recs []history.Record, unrecorded uint64) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := history.NewWriter(&buf, history.Header{StartUnixNano: 1_700_000_000_000_000_001})
	if err != nil {
		t.Fatal(err)
	}
	for i := range recs {
		if err := w.Append(&recs[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(unrecorded); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func read(b []byte) (recs []history.Record, t history.Trailer, err error) {
	r, err := history.NewReader(bytes.NewReader(b), "x.hist")
	if err != nil {
		return nil, t, err
	}
	defer r.Close()
	for {
		var rec history.Record
		if err := r.Next(&rec); err != nil {
			t, _ = r.Trailer()
			return recs, t, err
		}
		recs = append(recs, rec)
	}
}

func TestRecordsSurviveTheRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.SliceOfN(records(), 0, 50).Draw(rt, "records")
		got, trailer, err := read(write(t, want, 7))
		if err != io.EOF {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got); len(want) > 0 && diff != "" {
			rt.Fatal(diff)
		}
		if trailer.Records != uint64(len(want)) || trailer.Unrecorded != 7 {
			rt.Fatalf("trailer %+v of %d records", trailer, len(want))
		}
	})
}

func TestLongHistoriesSpanBlocks(t *testing.T) {
	want := make([]history.Record, 2*history.BlockRecordsMax+3)
	for i := range want {
		want[i] = history.Record{N: uint64(i), Sent: history.Never}
	}
	got, trailer, err := read(write(t, want, 0))
	if err != io.EOF || !slices.Equal(got, want) {
		t.Fatalf("%d records read, error %v", len(got), err)
	}
	if trailer.Blocks != 3 {
		t.Errorf("%d blocks, want 3", trailer.Blocks)
	}
}

func golden() []history.Record {
	return []history.Record{
		{N: 1, Subject: 0x0102030405060708, Ordinal: 9, Intended: 10, Sent: 11, Done: 12, Status: 202,
			Outcome: history.Completed, Code: 3, Tag: [16]byte{0xaa, 15: 0xbb}},
		{N: math.MaxUint64, Intended: math.MaxInt64, Sent: history.Never, Done: history.Never, Outcome: history.Dropped},
		{N: 2, Subject: 5, Sent: 6, Done: 7, Outcome: history.Failed, Code: 1},
	}
}

// The record and the file are formats: a change here needs a new Version.
func TestGoldenRecord(t *testing.T) {
	var b [history.RecordBytes]byte
	rec := golden()[0]
	rec.Encode(&b)
	want := "\x01\x00\x00\x00\x00\x00\x00\x00\x08\x07\x06\x05\x04\x03\x02\x01\x09\x00\x00\x00" +
		"\x0a\x00\x00\x00\x00\x00\x00\x00\x0b\x00\x00\x00\x00\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00" +
		"\xca\x00\x01\x03\xaa\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xbb"
	if string(b[:]) != want {
		t.Fatalf("record encodes as\n% x, want\n% x", b, want)
	}
}

func TestGoldenFile(t *testing.T) {
	path := filepath.Join("testdata", "golden.hist")
	if *update {
		if err := os.WriteFile(path, write(t, golden(), 4), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, trailer, err := read(b)
	if err != io.EOF {
		t.Fatal(err)
	}
	if diff := cmp.Diff(golden(), got); diff != "" {
		t.Error(diff)
	}
	if want := (history.Trailer{Records: 3, Blocks: 1, Unrecorded: 4}); trailer != want {
		t.Errorf("trailer %+v, want %+v", trailer, want)
	}
}

func TestEveryTruncationIsNamedWithItsOffset(t *testing.T) {
	whole := write(t, golden(), 0)
	for n := range whole {
		got, _, err := read(whole[:n])
		var fe *history.FileError
		if !errors.Is(err, history.ErrTruncated) || !errors.As(err, &fe) {
			t.Fatalf("cut at %d of %d: error %v, want ErrTruncated", n, len(whole), err)
		}
		if fe.File != "x.hist" || fe.Offset != int64(n) {
			t.Fatalf("cut at %d: error names %s, byte %d", n, fe.File, fe.Offset)
		}
		if len(got) != 0 && len(got) != len(golden()) {
			t.Fatalf("cut at %d: part of a block was returned", n)
		}
	}
}

// Offsets of the golden file's parts.
const (
	firstBlock = 32
	firstFrame = firstBlock + 16
	trailerLen = 32
)

// reseal gives a part that was spoilt the checksum of what it now says, at
// sum, so that what else a reader holds against it is reached.
func reseal(part []byte, sum int) []byte {
	table := crc32.MakeTable(crc32.Castagnoli)
	c := crc32.Update(crc32.Checksum(part[:sum], table), table, part[sum+4:])
	binary.LittleEndian.PutUint32(part[sum:], c)
	return part
}

func TestCorruptFilesAreNamedWithTheirOffset(t *testing.T) {
	whole := write(t, golden(), 0)
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	// block is the file with another frame in its only block, its checksum right.
	block := func(frame []byte) []byte {
		b := append(bytes.Clone(whole[:firstFrame]), frame...)
		binary.LittleEndian.PutUint32(b[firstBlock+8:], uint32(len(frame)))
		reseal(b[firstBlock:], 12)
		return append(b, whole[len(whole)-trailerLen:]...)
	}
	trailer := bytes.Clone(whole)
	trailer[len(whole)-24] ^= 0xff
	reseal(trailer[len(whole)-trailerLen:], 28)
	flip := func(at int) []byte {
		b := bytes.Clone(whole)
		b[at] ^= 0xff
		return b
	}
	for _, tc := range []struct {
		name   string
		file   []byte
		offset int64
		reason string
	}{
		{"not a history", flip(0), 0, "does not begin with"},
		{"another version", flip(8), 8, "this program reads"},
		{"another record size", flip(12), 12, "record size"},
		{"another start", flip(17), 0, "the header does not match its checksum"},
		{"no block", flip(firstBlock), firstBlock, "neither a block nor the trailer"},
		{"absurd record count", flip(firstBlock + 6), firstBlock, "block 1 is of"},
		{"absurd length", flip(firstBlock + 11), firstBlock, "block 1 is of"},
		{"a byte of the frame", flip(firstFrame + 20), firstBlock, "block 1 does not match its checksum"},
		{"no frame", block([]byte("no zstd")), firstBlock, "block 1 does not decompress"},
		{"too few records", block(enc.EncodeAll(make([]byte, history.RecordBytes), nil)), firstBlock, "its 3 records need"},
		{"decompression bomb", block(enc.EncodeAll(make([]byte, 64<<20), nil)), firstBlock, "block 1 does not decompress"},
		{"a byte of the trailer", flip(len(whole) - 10), int64(len(whole) - trailerLen), "the trailer does not match its checksum"},
		{"trailer disagrees", trailer, int64(len(whole) - trailerLen), "trailer counts"},
		{"bytes behind the trailer", append(bytes.Clone(whole), 'x'), int64(len(whole)), "bytes follow"},
	} {
		_, _, err := read(tc.file)
		var fe *history.FileError
		if !errors.Is(err, history.ErrCorrupt) || !errors.As(err, &fe) {
			t.Errorf("%s: error %v, want ErrCorrupt", tc.name, err)
		} else if fe.Offset != tc.offset || !strings.Contains(fe.Reason, tc.reason) {
			t.Errorf("%s: error says byte %d: %s; want byte %d: %s", tc.name, fe.Offset, fe.Reason, tc.offset, tc.reason)
		}
	}
}

// No bit of a file can flip without being noticed, and none of the records of
// its part reach the reader.
func TestEveryFlippedBitIsNoticed(t *testing.T) {
	whole := write(t, golden(), 4)
	for at := range whole {
		for bit := range 8 {
			spoilt := bytes.Clone(whole)
			spoilt[at] ^= 1 << bit
			got, _, err := read(spoilt)
			var fe *history.FileError
			if !errors.As(err, &fe) || fe.File != "x.hist" || !errors.Is(err, history.ErrCorrupt) && !errors.Is(err, history.ErrTruncated) {
				t.Fatalf("bit %d of byte %d: error %v", bit, at, err)
			}
			if inTrailer := at >= len(whole)-trailerLen; !inTrailer && len(got) > 0 {
				t.Fatalf("bit %d of byte %d: records of a spoilt part were returned", bit, at)
			}
		}
	}
}

func TestDirStreamsAllFilesInOrder(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		w, err := history.Create(dir, i, history.Header{StartUnixNano: 5})
		if err != nil {
			t.Fatal(err)
		}
		for j := range i {
			if err := w.Append(&history.Record{N: uint64(10*i + j)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := history.Create(dir, 0, history.Header{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("overwriting a history: error %v", err)
	}
	d, err := history.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var got []uint64
	var rec history.Record
	for err = d.Next(&rec); err == nil; err = d.Next(&rec) {
		got = append(got, rec.N)
	}
	if err != io.EOF || !cmp.Equal(got, []uint64{10, 20, 21}) {
		t.Fatalf("read %v, error %v", got, err)
	}
	if d.Totals().Records != 3 || d.Totals().Unrecorded != 3 || d.Header().StartUnixNano != 5 {
		t.Errorf("totals %+v, header %+v", d.Totals(), d.Header())
	}
}

func TestDirNamesWhatIsMissingOrCut(t *testing.T) {
	dir := t.TempDir()
	if _, err := history.OpenDir(dir); !errors.Is(err, history.ErrNoFiles) || !strings.Contains(err.Error(), dir) {
		t.Errorf("empty folder: error %v", err)
	}
	if _, err := history.OpenDir(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing folder: error %v", err)
	}
	whole := write(t, golden(), 0)
	path := filepath.Join(dir, history.Name(0))
	if err := os.WriteFile(path, whole[:len(whole)-1], 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := history.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var rec history.Record
	for err = d.Next(&rec); err == nil; err = d.Next(&rec) {
	}
	var fe *history.FileError
	if !errors.As(err, &fe) || fe.File != path || !errors.Is(err, history.ErrTruncated) {
		t.Errorf("truncated file: error %v", err)
	}
}

func TestWriterReportsAFailingDisk(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "f")) // not writable
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := history.NewWriter(f, history.Header{}); err == nil {
		t.Error("a header that could not be written was not reported")
	}
	w, _ := history.NewWriter(&bytes.Buffer{}, history.Header{})
	if err := w.WriteBlock(make([]byte, 65)); err == nil {
		t.Error("a block of 65 bytes was accepted")
	}
	if err := w.Close(0); err == nil {
		t.Error("Close hides the failed block")
	}
}

func FuzzReader(f *testing.F) {
	whole := write(f, golden(), 1)
	f.Add(whole)
	f.Add(whole[:50])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		recs, trailer, err := read(b)
		var fe *history.FileError
		switch {
		case err == io.EOF:
			if trailer.Records != uint64(len(recs)) {
				t.Fatalf("%d records, trailer says %d", len(recs), trailer.Records)
			}
		case !errors.As(err, &fe):
			t.Fatalf("error %v is not placed in the file", err)
		}
	})
}
