package history

import (
	"errors"
	"fmt"
	"hash/crc32"
)

// The file, all integers little endian:
//
//	header   magic [8]"LOADHIST", version u32, record size u32,
//	         start of the run (Unix ns) i64, reserved [4], checksum u32
//	block*   marker u32, records u32, compressed length u32, checksum u32,
//	         zstd frame
//	trailer  marker u32, records u64, blocks u64, unrecorded u64, checksum u32
//
// A checksum is CRC-32C over all other bytes of its part, as they are stored:
// it is held against them before anything in them is believed. The frames
// carry none of zstd's own.
//
// A frame holds its records by byte position: the first byte of each record,
// then the second of each, and so on. Against whole records one after another
// that halves the file and takes a third of the time to compress.
const (
	// Version is the format's version, written to and required of every file.
	Version = 2
	// Ext ends the name of every history file.
	Ext = ".hist"
	// BlockRecordsMax bounds the records of one block, and with it what a
	// reader must hold in memory.
	BlockRecordsMax = 16384

	magic         = "LOADHIST"
	headerBytes   = 32
	blockBytes    = 16
	trailerBytes  = 32
	blockMarker   = 0x4b4c4231 // "1BLK"
	trailerMarker = 0x444e4531 // "1END"
	// compressedMax bounds a block's compressed length: zstd adds a few bytes
	// to what it cannot compress.
	compressedMax = BlockRecordsMax*RecordBytes + 4096
)

// Errors of reading, for errors.Is. Both come wrapped in a *FileError.
var (
	// ErrTruncated: the file ends before its trailer is complete; what was
	// read before it is sound.
	ErrTruncated = errors.New("history file is truncated")
	// ErrCorrupt: the bytes are not a history, or not as they were written: they
	// contradict their checksums or their own counts.
	ErrCorrupt = errors.New("history file is corrupt")
	// ErrNoFiles: the folder holds no history file.
	ErrNoFiles = errors.New("no history files")
)

// FileError places a reading error in a file.
type FileError struct {
	File   string
	Offset int64  // byte offset of the part that could not be read
	Reason string // what was expected there
	Err    error  // ErrTruncated, ErrCorrupt or an I/O error
}

// Error implements error.
func (e *FileError) Error() string {
	return fmt.Sprintf("%s: %v at byte %d: %s", e.File, e.Err, e.Offset, e.Reason)
}

// Unwrap makes errors.Is find ErrTruncated and ErrCorrupt.
func (e *FileError) Unwrap() error { return e.Err }

// Header is what a file says of its run.
type Header struct {
	StartUnixNano int64 // wall-clock start of the run; record times count from it
}

// Trailer is what a complete file says of itself.
type Trailer struct {
	Records uint64
	Blocks  uint64
	// Unrecorded counts requests that were scheduled after the run had been
	// cancelled: dropped, and without a record.
	Unrecorded uint64
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers a part of a file: its head, without the checksum in it, and
// what follows.
func checksum(head, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, body)
}

// toPlanes rearranges whole records by byte position; dst is as long as src.
func toPlanes(dst, src []byte) {
	count := len(src) / RecordBytes
	for pos := range RecordBytes {
		plane := dst[pos*count : (pos+1)*count]
		for i := range plane {
			plane[i] = src[i*RecordBytes+pos]
		}
	}
}

// fromPlanes is the inverse of toPlanes.
func fromPlanes(dst, src []byte) {
	count := len(src) / RecordBytes
	for pos := range RecordBytes {
		plane := src[pos*count : (pos+1)*count]
		for i, b := range plane {
			dst[i*RecordBytes+pos] = b
		}
	}
}
