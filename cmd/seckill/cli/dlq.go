package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/system/dlq"
	"github.com/hotsku/hotsku/system/mq"
)

// replayTimeout bounds one send of a replay.
const replayTimeout = 3 * time.Second

func newDLQ(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "dlq", Short: "List, show, replay and set aside messages that were given up on", Args: noArgs,
		Long: `dlq works on the dead letters in PostgreSQL: messages the consumers parked, and those the broker gave up on,
which the reconcile role takes over from its %DLQ% topics. A letter is open until its reservation is decided,
its event is sent again, or a person sets it aside. Classes:

  poison               no build can read it
  newer_schema         a newer build can: replay it with one
  refused_by_database  PostgreSQL will not take its content
  handed_back          readable; every delivery failed. The reconcile role replays it by itself a few times`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDLQList(o), newDLQShow(o), newDLQReplay(o), newDLQSetAside(o))
	return cmd
}

// withLetters gives a subcommand its settings and a pool.
func (o *options) withLetters(cmd *cobra.Command, check func() error, run func(ctx context.Context, pool *pgxpool.Pool) error) error {
	if _, err := o.settle(cmd); err != nil {
		return err
	}
	if _, err := o.logger(); err != nil {
		return err
	}
	if err := check(); err != nil {
		return usageError{err}
	}
	pool, err := o.migrated(cmd.Context(), "dlq")
	if err != nil {
		return err
	}
	defer pool.Close()
	return run(cmd.Context(), pool)
}

func newDLQList(o *options) *cobra.Command {
	var f dlq.Filter
	var class string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List open dead letters", Args: noArgs,
		Example: `  seckill dlq list --postgres "$DSN"
  seckill dlq list --all --class poison --json --postgres "$DSN"`,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		check := func() (err error) {
			if f.Class, err = dlq.ParseClass(class); err == nil && (f.Limit < 1 || f.Limit > dlq.ListMax) {
				err = fmt.Errorf("--limit %d: must be 1 to %d", f.Limit, dlq.ListMax)
			}
			return err
		}
		return o.withLetters(cmd, check, func(ctx context.Context, pool *pgxpool.Pool) error {
			letters, err := dlq.List(ctx, pool, f)
			if err != nil {
				return err
			}
			return printLetters(cmd.OutOrStdout(), letters, asJSON, time.Now())
		})
	}
	o.postgresFlags(cmd.Flags())
	o.logFlags(cmd.Flags())
	cmd.Flags().BoolVar(&f.All, "all", false, "those with nothing left to do, too")
	cmd.Flags().StringVar(&class, "class", "", "only of this class")
	cmd.Flags().Int64Var(&f.After, "after", 0, "only letters after this id: the next page")
	cmd.Flags().IntVar(&f.Limit, "limit", 100, "letters at most")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

func printLetters(w io.Writer, letters []dlq.Letter, asJSON bool, now time.Time) error {
	if asJSON {
		out := json.NewEncoder(w)
		for i := range letters {
			if err := out.Encode(&letters[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if len(letters) == 0 {
		_, err := fmt.Fprintln(w, "no dead letter")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tAGE\tSTATE\tCLASS\tKIND\tREPLAYS\tRESERVATION\tDECIDED\tREASON")
	for i := range letters {
		l := &letters[i]
		fmt.Fprintf(table, "%d\t%v\t%s\t%s\t%s\t%d\t%s\t%s\t%.60q\n", l.ID, now.Sub(l.CreatedAt).Round(time.Second), l.State(), l.Class, l.Kind,
			l.Replays, l.ReservationID, l.Decided, l.Reason)
	}
	return table.Flush()
}

// oneID takes the id of a letter as the only argument.
func oneID(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s takes the id of one dead letter; seckill dlq list shows them", cmd.CommandPath())}
	}
	_, err := letterIDs(args)
	return err
}

// someIDs takes the ids of letters.
func someIDs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError{fmt.Errorf("%s takes ids of dead letters; seckill dlq list shows them", cmd.CommandPath())}
	}
	_, err := letterIDs(args)
	return err
}

func letterIDs(args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for i, text := range args {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			return nil, usageError{fmt.Errorf("%q is no id of a dead letter: must be a positive integer", text)}
		}
		ids[i] = id
	}
	return ids, nil
}

func newDLQShow(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Print one dead letter as JSON, with its body", Args: oneID,
		Example: `  seckill dlq show 17 --postgres "$DSN"`,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.withLetters(cmd, nothing, func(ctx context.Context, pool *pgxpool.Pool) error {
			ids, err := letterIDs(args)
			if err != nil {
				return err
			}
			l, err := dlq.Read(ctx, pool, ids[0])
			if err != nil {
				return err
			}
			out := json.NewEncoder(cmd.OutOrStdout())
			out.SetIndent("", "  ")
			out.SetEscapeHTML(false)
			return out.Encode(struct {
				dlq.Letter
				State string `json:"state"`
				Body  any    `json:"body"`
			}{l, l.State(), shown(l.Body)})
		})
	}
	o.postgresFlags(cmd.Flags())
	o.logFlags(cmd.Flags())
	return cmd
}

func nothing() error { return nil }

// shown is a body as JSON, as text, or, if it is neither, as bytes (base64).
func shown(body []byte) any {
	switch {
	case json.Valid(body):
		return json.RawMessage(body)
	case utf8.Valid(body):
		return string(body)
	}
	return map[string][]byte{"bytes": body}
}

func newDLQReplay(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "replay ID...", Short: "Send dead letters again, under their own message ids", Args: someIDs,
		Long: "replay sends each message once more. What was decided meanwhile, or cannot be read by this build, is refused and\n" +
			"left as it is; the others are sent. A replay whose confirmation was lost may be repeated: the inbox knows the message.",
		Example: `  seckill dlq replay 17 18 --postgres "$DSN" --name-server 127.0.0.1:9876`,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		check := func() error {
			if o.cfg.MQ.NameServer == "" {
				return errors.New("no RocketMQ: give --name-server IP:port")
			}
			return o.cfg.MQ.Validate()
		}
		return o.withLetters(cmd, check, func(ctx context.Context, pool *pgxpool.Pool) error {
			ids, err := letterIDs(args)
			if err != nil {
				return err
			}
			sender, err := mq.NewProducer(o.cfg.MQ, replayTimeout)
			if err != nil {
				return err
			}
			defer sender.Close()
			return forEach(ids, func(id int64) error {
				if err := dlq.Replay(ctx, pool, sender, id); err != nil {
					return err
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "dead letter %d: sent again\n", id)
				return err
			})
		})
	}
	o.postgresFlags(cmd.Flags())
	o.mqFlags(cmd.Flags())
	o.logFlags(cmd.Flags())
	return cmd
}

func newDLQSetAside(o *options) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "set-aside ID...", Short: "Settle dead letters for good", Args: someIDs,
		Long: "set-aside settles letters that no replay can mend. Where the message's reservation is not decided yet, it ends as\n" +
			"SET_ASIDE: the user's query shows it, the unit stays with it, and the message, should it come again, changes nothing.",
		Example: `  seckill dlq set-aside 17 --note "broken by release 1.4, ticket 12" --postgres "$DSN"`,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		check := func() error {
			if note == "" {
				return errors.New("say why: give --note TEXT")
			}
			return nil
		}
		return o.withLetters(cmd, check, func(ctx context.Context, pool *pgxpool.Pool) error {
			ids, err := letterIDs(args)
			if err != nil {
				return err
			}
			return forEach(ids, func(id int64) error {
				ended, err := dlq.SetAside(ctx, pool, id, note)
				if err != nil {
					return err
				}
				what := "settled; no reservation was ended by it"
				if ended != "" {
					what = "settled; " + ended + " is set aside"
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "dead letter %d: %s\n", id, what)
				return err
			})
		})
	}
	o.postgresFlags(cmd.Flags())
	o.logFlags(cmd.Flags())
	cmd.Flags().StringVar(&note, "note", "", "why; kept with the letter")
	return cmd
}

// forEach does all of them, whatever becomes of one.
func forEach(ids []int64, do func(int64) error) error {
	var errs []error
	for _, id := range ids {
		if err := do(id); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
