package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// Writer writes one file. It is not safe for concurrent use; writers of
// different files are independent. A file that was not closed has no trailer
// and reads as truncated.
type Writer struct {
	w       io.Writer
	closer  io.Closer
	enc     *zstd.Encoder
	pending []byte // encoded records of the block being filled
	planes  []byte // reused for rearranged blocks
	out     []byte // reused for compressed blocks
	trailer Trailer
	err     error // first failure; every later call returns it
}

// Name is the file name of the i-th file of a history folder.
func Name(i int) string { return fmt.Sprintf("%04d%s", i, Ext) }

// Create makes the i-th file of the folder dir, which must exist. It refuses
// to overwrite.
func Create(dir string, i int, h Header) (*Writer, error) {
	f, err := os.OpenFile(filepath.Join(dir, Name(i)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create history file: %w", err)
	}
	w, err := NewWriter(f, h)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	w.closer = f
	return w, nil
}

// NewWriter writes a history to w, the header at once.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	enc, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("make zstd encoder: %w", err)
	}
	var b [headerBytes]byte
	copy(b[:], magic)
	binary.LittleEndian.PutUint32(b[8:], Version)
	binary.LittleEndian.PutUint32(b[12:], RecordBytes)
	binary.LittleEndian.PutUint64(b[16:], uint64(h.StartUnixNano))
	binary.LittleEndian.PutUint32(b[28:], checksum(b[:28], nil))
	if _, err := w.Write(b[:]); err != nil {
		return nil, fmt.Errorf("write history header: %w", err)
	}
	return &Writer{w: w, enc: enc}, nil
}

// Append adds one record, writing a block whenever one is full.
func (w *Writer) Append(r *Record) error {
	if w.err != nil {
		return w.err
	}
	var b [RecordBytes]byte
	r.Encode(&b)
	w.pending = append(w.pending, b[:]...)
	if len(w.pending) >= BlockRecordsMax*RecordBytes {
		return w.flush()
	}
	return nil
}

// WriteBlock writes already encoded records as one block, after whatever
// Append left pending. Their length must be a multiple of RecordBytes and at
// most BlockRecordsMax records. records is not retained.
func (w *Writer) WriteBlock(records []byte) error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.block(records)
}

// Close writes what is pending and the trailer, and closes the file. unrecorded
// is Trailer.Unrecorded.
func (w *Writer) Close(unrecorded uint64) error {
	if err := w.flush(); err == nil {
		var b [trailerBytes]byte
		binary.LittleEndian.PutUint32(b[0:], trailerMarker)
		binary.LittleEndian.PutUint64(b[4:], w.trailer.Records)
		binary.LittleEndian.PutUint64(b[12:], w.trailer.Blocks)
		binary.LittleEndian.PutUint64(b[20:], unrecorded)
		binary.LittleEndian.PutUint32(b[28:], checksum(b[:28], nil))
		if _, err := w.w.Write(b[:]); err != nil {
			w.err = fmt.Errorf("write history trailer: %w", err)
		}
	}
	err := errors.Join(w.err, w.enc.Close())
	if w.closer != nil {
		err = errors.Join(err, w.closer.Close())
		w.closer = nil
	}
	if w.err == nil {
		w.err = errors.New("history writer is closed")
	}
	return err
}

func (w *Writer) flush() error {
	if w.err != nil || len(w.pending) == 0 {
		return w.err
	}
	err := w.block(w.pending)
	w.pending = w.pending[:0]
	return err
}

func (w *Writer) block(records []byte) error {
	if len(records) == 0 {
		return nil
	}
	count := len(records) / RecordBytes
	if len(records)%RecordBytes != 0 || count > BlockRecordsMax {
		w.err = fmt.Errorf("write history block: %d bytes are not 1 to %d records", len(records), BlockRecordsMax)
		return w.err
	}
	var head [blockBytes]byte
	w.out = append(w.out[:0], head[:]...)
	if cap(w.planes) < len(records) {
		w.planes = make([]byte, BlockRecordsMax*RecordBytes)
	}
	w.planes = w.planes[:len(records)]
	toPlanes(w.planes, records)
	w.out = w.enc.EncodeAll(w.planes, w.out)
	binary.LittleEndian.PutUint32(w.out[0:], blockMarker)
	binary.LittleEndian.PutUint32(w.out[4:], uint32(count))
	binary.LittleEndian.PutUint32(w.out[8:], uint32(len(w.out)-blockBytes))
	binary.LittleEndian.PutUint32(w.out[12:], checksum(w.out[:12], w.out[blockBytes:]))
	if _, err := w.w.Write(w.out); err != nil {
		w.err = fmt.Errorf("write history block: %w", err)
		return w.err
	}
	w.trailer.Records += uint64(count)
	w.trailer.Blocks++
	return nil
}
