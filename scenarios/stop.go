package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// ErrLeft wraps why something that a run started could not be ended.
var ErrLeft = errors.New("not everything could be stopped")

// stopTimeout bounds the end of everything a run started.
const stopTimeout = time.Minute

// stop ends the product, saves the servers' logs, and gives the servers back:
// to be kept if all went well.
func (r *runner) stop(well bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var errs []error
	if r.stores != nil {
		errs = append(errs, r.stores.Close())
	}
	if r.fleet != nil {
		errs = append(errs, r.fleet.Stop(ctx))
		for _, m := range r.fleet.Members() {
			select {
			case <-m.Ended():
			default:
				errs = append(errs, fmt.Errorf("%w: %s runs on", ErrLeft, m.Name()))
			}
		}
		errs = append(errs, r.searchLogs())
	}
	errs = append(errs, r.closeWays())
	for _, s := range r.stack.Servers() {
		errs = append(errs, copyFile(s.LogPath(), filepath.Join(r.dir.Logs(), s.Name()+".log")))
	}
	well = well && errors.Join(errs...) == nil
	return errors.Join(append(errs, r.o.Servers.give(r.stack, r.lent, well && r.sound()))...)
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("save log: %w", err)
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("save log: %w", err)
	}
	_, err = io.Copy(dst, src)
	if err := errors.Join(err, dst.Close()); err != nil {
		return fmt.Errorf("save log: %w", err)
	}
	return nil
}
