package history

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// Reader streams the records of one file, holding one block in memory. It is
// not safe for concurrent use.
type Reader struct {
	name    string
	r       *bufio.Reader
	closer  io.Closer
	dec     *zstd.Decoder
	header  Header
	trailer Trailer
	seen    Trailer // what was read so far
	offset  int64   // of the next unread byte
	packed  []byte  // reused for compressed blocks
	planes  []byte  // the decompressed block
	records []byte  // its records
	rest    []byte  // its records not yet returned
	err     error   // sticky: io.EOF or a *FileError
}

// Open opens the file at path and reads its header.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open history file: %w", err)
	}
	r, err := NewReader(f, path)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.closer = f
	return r, nil
}

// NewReader reads a history from r; name is used in errors.
func NewReader(r io.Reader, name string) (*Reader, error) {
	dec, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(BlockRecordsMax*RecordBytes+1024))
	if err != nil {
		return nil, fmt.Errorf("make zstd decoder: %w", err)
	}
	rd := &Reader{name: name, r: bufio.NewReaderSize(r, 64<<10), dec: dec}
	if err := rd.readHeader(); err != nil {
		dec.Close()
		return nil, err
	}
	return rd, nil
}

// Header returns the file's header.
func (r *Reader) Header() Header { return r.header }

// Trailer returns the file's trailer; ok is false until Next returned io.EOF.
func (r *Reader) Trailer() (t Trailer, ok bool) { return r.trailer, r.err == io.EOF }

// Next reads one record into rec. It returns io.EOF after the last record of
// a complete file whose counts agree, and otherwise a *FileError; errors are
// final.
func (r *Reader) Next(rec *Record) error {
	for len(r.rest) == 0 {
		if r.err == nil {
			r.err = r.readPart()
		}
		if r.err != nil {
			return r.err
		}
	}
	rec.Decode((*[RecordBytes]byte)(r.rest))
	r.rest = r.rest[RecordBytes:]
	return nil
}

// Close releases the reader and closes the file.
func (r *Reader) Close() error {
	r.dec.Close()
	if r.closer == nil {
		return nil
	}
	c := r.closer
	r.closer = nil
	if err := c.Close(); err != nil {
		return fmt.Errorf("close history file: %w", err)
	}
	return nil
}

func (r *Reader) fail(offset int64, err error, format string, args ...any) error {
	return &FileError{File: r.name, Offset: offset, Err: err, Reason: fmt.Sprintf(format, args...)}
}

// fill reads len(dst) bytes of what the file must contain next.
func (r *Reader) fill(dst []byte, what string) error {
	n, err := io.ReadFull(r.r, dst)
	r.offset += int64(n)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return r.fail(r.offset, ErrTruncated, "%s ends after %d of %d bytes", what, n, len(dst))
	default:
		return r.fail(r.offset, err, "cannot read %s", what)
	}
}

func (r *Reader) readHeader() error {
	var b [headerBytes]byte
	if err := r.fill(b[:], "the header"); err != nil {
		return err
	}
	if string(b[:8]) != magic {
		return r.fail(0, ErrCorrupt, "it does not begin with %q", magic)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != Version {
		return r.fail(8, ErrCorrupt, "version is %d, this program reads %d", v, Version)
	}
	if n := binary.LittleEndian.Uint32(b[12:]); n != RecordBytes {
		return r.fail(12, ErrCorrupt, "record size is %d, not %d", n, RecordBytes)
	}
	if checksum(b[:28], nil) != binary.LittleEndian.Uint32(b[28:]) {
		return r.fail(0, ErrCorrupt, "the header does not match its checksum")
	}
	r.header.StartUnixNano = int64(binary.LittleEndian.Uint64(b[16:]))
	return nil
}

// readPart reads the next block into r.rest, or the trailer: io.EOF.
func (r *Reader) readPart() error {
	start := r.offset
	var marker [4]byte
	if err := r.fill(marker[:], "the next block or the trailer"); err != nil {
		return err
	}
	switch m := binary.LittleEndian.Uint32(marker[:]); m {
	case blockMarker:
		return r.readBlock(start)
	case trailerMarker:
		return r.readTrailer(start)
	default:
		return r.fail(start, ErrCorrupt, "%#x is neither a block nor the trailer", m)
	}
}

func (r *Reader) readBlock(start int64) error {
	block := r.seen.Blocks + 1
	b := [blockBytes]byte{}
	binary.LittleEndian.PutUint32(b[0:], blockMarker)
	if err := r.fill(b[4:], "a block's header"); err != nil {
		return err
	}
	count, length := binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	if count == 0 || count > BlockRecordsMax {
		return r.fail(start, ErrCorrupt, "block %d is of %d records, must be 1 to %d", block, count, BlockRecordsMax)
	}
	if length > compressedMax {
		return r.fail(start, ErrCorrupt, "block %d is of %d compressed bytes, must be at most %d", block, length, compressedMax)
	}
	if cap(r.packed) < int(length) {
		r.packed = make([]byte, length)
	}
	r.packed = r.packed[:length]
	if err := r.fill(r.packed, "a block"); err != nil {
		return err
	}
	if checksum(b[:12], r.packed) != binary.LittleEndian.Uint32(b[12:]) {
		return r.fail(start, ErrCorrupt, "block %d does not match its checksum", block)
	}
	planes, err := r.dec.DecodeAll(r.packed, r.planes[:0])
	if err != nil {
		return r.fail(start, ErrCorrupt, "block %d does not decompress: %v", block, err)
	}
	r.planes = planes
	if len(planes) != int(count)*RecordBytes {
		return r.fail(start, ErrCorrupt, "block %d holds %d bytes, its %d records need %d", block, len(planes), count, int(count)*RecordBytes)
	}
	if cap(r.records) < len(planes) {
		r.records = make([]byte, len(planes))
	}
	r.records = r.records[:len(planes)]
	fromPlanes(r.records, planes)
	r.rest = r.records
	r.seen.Records += uint64(count)
	r.seen.Blocks++
	return nil
}

func (r *Reader) readTrailer(start int64) error {
	b := [trailerBytes]byte{}
	binary.LittleEndian.PutUint32(b[0:], trailerMarker)
	if err := r.fill(b[4:], "the trailer"); err != nil {
		return err
	}
	if checksum(b[:28], nil) != binary.LittleEndian.Uint32(b[28:]) {
		return r.fail(start, ErrCorrupt, "the trailer does not match its checksum")
	}
	t := Trailer{
		Records:    binary.LittleEndian.Uint64(b[4:]),
		Blocks:     binary.LittleEndian.Uint64(b[12:]),
		Unrecorded: binary.LittleEndian.Uint64(b[20:]),
	}
	if t.Records != r.seen.Records || t.Blocks != r.seen.Blocks {
		return r.fail(start, ErrCorrupt, "trailer counts %d records in %d blocks, the file holds %d in %d",
			t.Records, t.Blocks, r.seen.Records, r.seen.Blocks)
	}
	switch _, err := r.r.ReadByte(); {
	case err == io.EOF:
	case err != nil:
		return r.fail(r.offset, err, "cannot read the end of the file")
	default:
		return r.fail(r.offset, ErrCorrupt, "bytes follow the trailer")
	}
	r.trailer = t
	return io.EOF
}
