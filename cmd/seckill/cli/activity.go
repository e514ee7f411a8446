package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/system/activity"
	"github.com/hotsku/hotsku/system/reservation"
	"github.com/hotsku/hotsku/system/seckill"
)

func newActivity(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "activity", Short: "Create, close and show activities", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newActivityCreate(o), newActivityClose(o), newActivityShow(o))
	return cmd
}

func newActivityCreate(o *options) *cobra.Command {
	var p activity.Params
	var starts string
	var length time.Duration
	cmd := &cobra.Command{
		Use: "create", Short: "Write the tokens, then warm Redis", Args: noArgs,
		Long: "create makes an activity of one SKU: one inventory token a unit in PostgreSQL, counted before\n" +
			"anything is sold, then Redis is warmed. Creating an existing activity with the same ids is refused;\n" +
			"if a crash left it in PostgreSQL only, create --warm-only --activity ID --sku ID finishes the work.",
		Example: `  seckill activity create --activity 10001 --sku 20001 --stock 10000 --price-cents 9900 --for 1h --postgres "$DSN" --redis 127.0.0.1:6379`,
	}
	var warmOnly bool
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if _, err := o.settle(cmd); err != nil {
			return err
		}
		if _, err := o.logger(); err != nil {
			return err
		}
		p.StartsAt = time.Now().UTC()
		if starts != "" {
			at, err := time.Parse(time.RFC3339, starts)
			if err != nil {
				return usageError{fmt.Errorf("--starts %q: must be a time such as 2026-11-11T00:00:00Z", starts)}
			}
			p.StartsAt = at
		}
		p.EndsAt = p.StartsAt.Add(length)
		if warmOnly {
			for _, given := range []string{"stock", "tokens", "price-cents", "starts", "for", "resell"} {
				if cmd.Flags().Changed(given) {
					return usageError{fmt.Errorf("--%s and --warm-only exclude each other: what PostgreSQL has is warmed", given)}
				}
			}
			if p.ActivityID <= 0 || p.SKUID <= 0 {
				return usageError{errors.New("--activity and --sku must be positive integers")}
			}
		} else if err := creatable(p, length); err != nil {
			return usageError{err}
		}
		pool, err := o.migrated(cmd.Context(), "activity")
		if err != nil {
			return err
		}
		defer pool.Close()
		redis, err := o.redis()
		if err != nil {
			return err
		}
		defer redis.Close()
		if err := redis.Check(cmd.Context()); err != nil { // before anything is written
			return err
		}
		seed, err := o.idSeed()
		if err != nil {
			return err
		}
		store, err := activity.New(pool, rand.New(rand.NewChaCha8(seed)))
		if err != nil {
			return err
		}
		warm := reservation.Activity{ActivityID: p.ActivityID, SKUID: p.SKUID, Stock: int64(p.Stock), Version: 1, StartsAt: p.StartsAt, EndsAt: p.EndsAt}
		if warmOnly {
			warm, err = warmable(cmd.Context(), store, p.ActivityID, p.SKUID)
		} else {
			err = store.Create(cmd.Context(), p)
		}
		if err != nil {
			return err
		}
		if err := redis.Warm(cmd.Context(), warm); err != nil {
			return err
		}
		fewer := ""
		if 0 < p.Tokens && p.Tokens < p.Stock {
			fewer = fmt.Sprintf(", %d of them with an inventory token", p.Tokens)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "activity %d SKU %d: %d units%s on sale from %s to %s\n", warm.ActivityID, warm.SKUID, warm.Stock, fewer,
			warm.StartsAt.Format(time.RFC3339), warm.EndsAt.Format(time.RFC3339))
		return nil
	}
	f := cmd.Flags()
	o.postgresFlags(f)
	o.redisFlags(f)
	f.Int64Var(&p.ActivityID, "activity", 0, "activity id")
	f.Int64Var(&p.SKUID, "sku", 0, "SKU id")
	f.IntVar(&p.Stock, "stock", 0, "units on sale")
	f.IntVar(&p.Tokens, "tokens", 0, "inventory tokens to make (default: as many as the stock)")
	f.Int64Var(&p.PriceCents, "price-cents", 0, "price of one unit, in cents")
	f.StringVar(&starts, "starts", "", "start, RFC 3339 (default: now)")
	f.DurationVar(&length, "for", time.Hour, "length of the sale")
	f.BoolVar(&p.Resell, "resell", false, "sell a cancelled or expired order's unit again (default: retire it)")
	f.BoolVar(&warmOnly, "warm-only", false, "only warm Redis, with what PostgreSQL has of the activity")
	return cmd
}

// creatable refuses a sale that could sell nothing.
func creatable(p activity.Params, length time.Duration) error {
	if length <= 0 {
		return fmt.Errorf("--for %v: must be positive", length)
	}
	if !p.EndsAt.After(time.Now()) {
		return fmt.Errorf("--starts %s: with --for %v the sale is over already", p.StartsAt.Format(time.RFC3339), length)
	}
	return p.Validate()
}

// warmable is what Redis must know of a SKU, as PostgreSQL has it.
func warmable(ctx context.Context, store *activity.Store, activityID, skuID int64) (reservation.Activity, error) {
	sum, err := store.Show(ctx, activityID)
	if err != nil {
		return reservation.Activity{}, err
	}
	if sum.Status != seckill.ActivityRunning {
		return reservation.Activity{}, fmt.Errorf("activity %d is %s: it cannot be warmed", activityID, sum.Status)
	}
	for _, sku := range sum.SKUs {
		if sku.SKUID == skuID {
			// Those under way are in no store that could be asked.
			if len(sku.Reservations) > 0 {
				return reservation.Activity{}, fmt.Errorf("activity %d has sold already: its stock warmed anew would be promised twice; close it, and sell what is left as another activity", activityID)
			}
			return reservation.Activity{ActivityID: activityID, SKUID: skuID, Stock: sku.Stock, Version: sum.Version,
				StartsAt: sum.StartsAt, EndsAt: sum.EndsAt}, nil
		}
	}
	return reservation.Activity{}, fmt.Errorf("activity %d has no SKU %d", activityID, skuID)
}

// sold says whether PostgreSQL knows the activity's SKU.
func sold(ctx context.Context, store *activity.Store, activityID, skuID int64) error {
	sum, err := store.Show(ctx, activityID)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(sum.SKUs, func(k activity.SKU) bool { return k.SKUID == skuID }) {
		return fmt.Errorf("activity %d has no SKU %d", activityID, skuID)
	}
	return nil
}

func newActivityClose(o *options) *cobra.Command {
	var id, sku int64
	cmd := &cobra.Command{
		Use: "close", Short: "End a sale now", Args: noArgs,
		Long: "close stops new reservations in Redis, then new orders in PostgreSQL. Messages under way end as\n" +
			"REJECTED_CLOSED and are compensated. Closing twice changes nothing.",
		Example: `  seckill activity close --activity 10001 --sku 20001 --postgres "$DSN" --redis 127.0.0.1:6379`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := o.settle(cmd); err != nil {
				return err
			}
			if id <= 0 || sku <= 0 {
				return usageError{errors.New("--activity and --sku must be positive integers")}
			}
			if _, err := o.logger(); err != nil {
				return err
			}
			redis, err := o.redis()
			if err != nil {
				return err
			}
			defer redis.Close()
			store, closePool, err := o.activities(cmd.Context())
			if err != nil {
				return err
			}
			defer closePool()
			if err := redis.SetStatus(cmd.Context(), id, sku, seckill.ActivityClosed); errors.Is(err, reservation.ErrUnknownActivity) {
				// Redis may have lost the sale; PostgreSQL says whether it was one.
				if serr := sold(cmd.Context(), store, id, sku); serr != nil {
					return errors.Join(err, serr)
				}
			} else if err != nil {
				return err
			}
			if err := store.Close(cmd.Context(), id); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "activity %d SKU %d: closed; what is under way ends as REJECTED_CLOSED\n", id, sku)
			return err
		},
	}
	o.postgresFlags(cmd.Flags())
	o.redisFlags(cmd.Flags())
	cmd.Flags().Int64Var(&id, "activity", 0, "activity id")
	cmd.Flags().Int64Var(&sku, "sku", 0, "SKU id")
	return cmd
}

func newActivityShow(o *options) *cobra.Command {
	var id int64
	cmd := &cobra.Command{
		Use: "show", Short: "Print an activity's counts as JSON", Args: noArgs,
		Example: `  seckill activity show --activity 10001 --postgres "$DSN"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := o.settle(cmd); err != nil {
				return err
			}
			if id <= 0 {
				return usageError{errors.New("--activity must be a positive integer")}
			}
			store, closePool, err := o.activities(cmd.Context())
			if err != nil {
				return err
			}
			defer closePool()
			summary, err := store.Show(cmd.Context(), id)
			if err != nil {
				return err
			}
			out := json.NewEncoder(cmd.OutOrStdout())
			out.SetIndent("", "  ")
			return out.Encode(summary)
		},
	}
	o.postgresFlags(cmd.Flags())
	cmd.Flags().Int64Var(&id, "activity", 0, "activity id")
	return cmd
}

// activities opens the store of activities for commands that make no tokens.
func (o *options) activities(ctx context.Context) (store *activity.Store, closePool func(), err error) {
	pool, err := o.migrated(ctx, "activity")
	if err != nil {
		return nil, nil, err
	}
	store, err = activity.New(pool, rand.New(rand.NewPCG(0, 0))) // draws nothing
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return store, pool.Close, nil
}
