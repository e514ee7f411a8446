package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotsku/hotsku/system/mq"
	"github.com/hotsku/hotsku/system/postgres"
	"github.com/hotsku/hotsku/system/seckill"
)

func newMigrate(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the database schema and the broker's topics up to date", Args: noArgs,
		Long: "migrate applies pending migrations and makes missing topics. Running it again changes nothing.\n" +
			"Without --name-server it leaves the broker alone.",
		Example: `  seckill migrate --postgres "$DSN" --name-server 127.0.0.1:9876 --broker 127.0.0.1:10911`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := o.settle(cmd); err != nil {
				return err
			}
			if _, err := o.logger(); err != nil {
				return err
			}
			if (o.cfg.MQ.NameServer == "") != (o.broker == "") {
				return usageError{errors.New("--name-server and --broker belong together")}
			}
			if o.broker != "" {
				if err := o.cfg.MQ.Validate(); err != nil {
					return usageError{err}
				}
				if _, err := netip.ParseAddrPort(o.broker); err != nil {
					return usageError{fmt.Errorf("--broker %q: must be IP:port", o.broker)}
				}
			}
			pool, err := o.pool(cmd.Context(), "migrate")
			if err != nil {
				return err
			}
			defer pool.Close()
			applied, err := postgres.Migrate(cmd.Context(), pool)
			if err != nil {
				return err
			}
			if applied == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "schema: up to date, 0 migrations applied")
			} else {
				fmt.Fprintf(cmd.OutOrStdout(), "schema: %d migrations applied\n", applied)
			}
			if o.broker == "" {
				return nil
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 30*time.Second)
			defer cancel()
			if err := mq.EnsureTopics(ctx, o.cfg.MQ, o.broker); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "topics: ready")
			return nil
		},
	}
	o.postgresFlags(cmd.Flags())
	o.mqFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.broker, "broker", "", "RocketMQ broker on which to make the topics, IP:port")
	o.logFlags(cmd.Flags())
	return cmd
}

func newToken(o *options) *cobra.Command {
	var user, activityID int64
	var ttl time.Duration
	cmd := &cobra.Command{
		Use: "token", Short: "Mint an eligibility token, for curl", Args: noArgs,
		Example: `  curl -H "Authorization: Bearer $(seckill token --user 30001 --activity 10001 --ttl 10m)" \
    -d '{"activity_id":10001,"sku_id":20001,"request_id":"r1","quantity":1}' http://127.0.0.1:8080/v1/seckill/orders`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := o.settle(cmd); err != nil {
				return err
			}
			switch {
			case user <= 0 || activityID <= 0:
				return usageError{errors.New("--user and --activity must be positive integers")}
			case ttl <= 0:
				return usageError{fmt.Errorf("--ttl %v: must be positive", ttl)}
			case len(o.cfg.TokenKeys) == 0:
				return usageError{errors.New("no token key: give --token-key ID:SECRET or SECKILL_TOKEN_KEY")}
			}
			codec, err := seckill.NewTokenCodec(o.cfg.TokenKeys...)
			if err != nil {
				return usageError{err}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n", codec.AppendSigned(nil, user, activityID, time.Now().Add(ttl).Unix()))
			return nil
		},
	}
	o.tokenFlags(cmd.Flags())
	cmd.Flags().Int64Var(&user, "user", 0, "user id")
	cmd.Flags().Int64Var(&activityID, "activity", 0, "activity id")
	cmd.Flags().DurationVar(&ttl, "ttl", 10*time.Minute, "how long it is valid")
	return cmd
}
