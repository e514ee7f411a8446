package history

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// DirReader streams the records of all files of a folder, one file open at a
// time. It is not safe for concurrent use.
type DirReader struct {
	files []string // not yet opened
	cur   *Reader
	total Trailer
	start Header
	err   error
}

// OpenDir opens the folder dir, and its first file. A folder without history
// files is ErrNoFiles.
func OpenDir(dir string) (*DirReader, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() && filepath.Ext(e.Name()) == Ext {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w in %s", ErrNoFiles, dir)
	}
	d := &DirReader{files: files}
	if err := d.advance(); err != nil {
		return nil, err
	}
	d.start = d.cur.Header()
	return d, nil
}

// Header returns the header of the first file.
func (d *DirReader) Header() Header { return d.start }

// Totals returns the sum of the trailers of the files read to their end; it is
// the whole folder's once Next returned io.EOF.
func (d *DirReader) Totals() Trailer { return d.total }

// Next reads one record into rec. It returns io.EOF after the last record of
// the last file, and a *FileError as Reader.Next does; errors are final.
func (d *DirReader) Next(rec *Record) error {
	for d.err == nil {
		err := d.cur.Next(rec)
		if err == nil {
			return nil
		}
		if err != io.EOF {
			d.err = err
			break
		}
		t, _ := d.cur.Trailer()
		d.total.Records += t.Records
		d.total.Blocks += t.Blocks
		d.total.Unrecorded += t.Unrecorded
		if len(d.files) == 0 {
			d.err = io.EOF
			break
		}
		d.err = d.advance()
	}
	return d.err
}

// Close closes the file that is open.
func (d *DirReader) Close() error {
	if d.err == nil {
		d.err = errors.New("history reader is closed")
	}
	return d.cur.Close()
}

func (d *DirReader) advance() error {
	if d.cur != nil {
		if err := d.cur.Close(); err != nil {
			return err
		}
	}
	r, err := Open(d.files[0])
	if err != nil {
		return err
	}
	d.cur, d.files = r, d.files[1:]
	return nil
}
