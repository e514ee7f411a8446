package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hotsku/hotsku/system/app"
	"github.com/hotsku/hotsku/system/reservation"
)

// roles are the long-running subcommands. Each prints one JSON line
// {"role","pid","listen","admin"} on standard output when it is ready.
func roles(o *options) []*cobra.Command {
	role := func(r app.Role, short, long, example string, flags ...func(*pflag.FlagSet)) *cobra.Command {
		cmd := &cobra.Command{
			Use: string(r), Short: short, Args: noArgs, Example: "  seckill " + string(r) + " " + example,
			Long: long + "\n\nPrints one JSON line {role, pid, listen, admin} when it is ready. SIGTERM drains it;\n" +
				"a second signal, or SIGKILL at any time, loses nothing that was accepted.",
			RunE: func(cmd *cobra.Command, _ []string) error { return o.runRoles(cmd.Context(), cmd) },
		}
		for _, add := range append(flags, o.processFlags) {
			add(cmd.Flags())
		}
		return cmd
	}
	listen := func(addr *string) func(*pflag.FlagSet) {
		return func(f *pflag.FlagSet) { f.StringVar(addr, "listen", *addr, "address to serve on, port 0 for any") }
	}
	each := []*cobra.Command{
		role(app.RoleAccess, "Serve POST /v1/seckill/orders",
			"access is the edge: it judges requests in its own process where it can, reserves in Redis and sends to RocketMQ.\nAny number of instances may run.",
			"--listen 127.0.0.1:8080 --redis 127.0.0.1:6379 --name-server 127.0.0.1:9876    # with SECKILL_TOKEN_KEY=ID:SECRET",
			o.redisFlags, o.mqFlags, o.tokenFlags, listen(&o.cfg.Listen), o.tlsFlags, o.limitFlags, o.submitFlags, o.valveFlags),
		role(app.RoleConsumer, "Turn messages into orders",
			"consumer runs the order transaction in PostgreSQL, a batch of messages at a time, and expires\norders that are not paid in time.",
			`--postgres "$DSN" --name-server 127.0.0.1:9876`,
			o.postgresFlags, o.mqFlags, func(f *pflag.FlagSet) {
				f.IntVar(&o.cfg.Consumer.Workers, "workers", o.cfg.Consumer.Workers, "transactions at once; tie it to what the database bears")
				f.IntVar(&o.cfg.Consumer.Batch, "batch", o.cfg.Consumer.Batch, "messages a transaction")
				f.DurationVar(&o.cfg.Payment.Window, "payment-window", o.cfg.Payment.Window, "how long a new order may stay unpaid before it expires")
				f.DurationVar(&o.cfg.Payment.Sweeper.Every, "sweep-every", o.cfg.Payment.Sweeper.Every, "between two looks for overdue orders that no message reminded of")
				f.DurationVar(&o.cfg.Payment.Sweeper.Grace, "sweep-grace", o.cfg.Payment.Sweeper.Grace, "how long after its time an order is left to its message")
			}),
		role(app.RoleScanner, "Resend reservations whose send was never confirmed",
			"scanner takes over what an access process left behind, with the original message id, and hands what it cannot bring home\n"+
				"to a person. It tells the access processes how far orders are behind. It starts without PostgreSQL if need be.",
			`--redis 127.0.0.1:6379 --name-server 127.0.0.1:9876 --postgres "$DSN"`,
			o.redisFlags, o.mqFlags, o.postgresFlags, func(f *pflag.FlagSet) {
				f.DurationVar(&o.cfg.Scanner.Poll, "poll", o.cfg.Scanner.Poll, "between two looks for what is due")
				f.DurationVar(&o.cfg.Scanner.Backoff.Base, "backoff", o.cfg.Scanner.Backoff.Base, "before the first repeat; doubled at each")
				f.DurationVar(&o.cfg.Scanner.Backoff.Max, "backoff-max", o.cfg.Scanner.Backoff.Max, "longest wait between repeats")
				f.DurationVar(&o.cfg.Scanner.HandOverAfter, "hand-over-after", o.cfg.Scanner.HandOverAfter, "age at which a reservation is handed to a person")
				f.Int64Var(&o.cfg.Scanner.HandOverAttempts, "hand-over-attempts", o.cfg.Scanner.HandOverAttempts, "and how often it must have been sent before")
			}),
		role(app.RoleOutbox, "Publish events and write decisions back to Redis",
			"outbox publishes event_outbox to RocketMQ, and its projector applies the events to Redis, each once.",
			`--redis 127.0.0.1:6379 --postgres "$DSN" --name-server 127.0.0.1:9876`,
			o.redisFlags, o.postgresFlags, o.mqFlags),
		role(app.RoleOrders, "Serve what became of a request, payment and cancellation",
			ordersLong,
			`--listen 127.0.0.1:8081 --redis 127.0.0.1:6379 --postgres "$DSN"    # with SECKILL_TOKEN_KEY=ID:SECRET
  curl -H "Authorization: Bearer $TOKEN" 'http://127.0.0.1:8081/v1/seckill/requests/r1?activity_id=10001&sku_id=20001'
  curl -H "Authorization: Bearer $TOKEN" 'http://127.0.0.1:8081/v1/seckill/reservations/resv_01JV0B6T2M1A7C8D9E0F1G2H3J?activity_id=10001&sku_id=20001'
  curl -H "Authorization: Bearer $TOKEN" -X POST http://127.0.0.1:8081/v1/seckill/orders/ord_01JV0B6T3K9QZX8D9E0F1G2H3J/pay`,
			o.redisFlags, o.postgresFlags, o.tokenFlags, listen(&o.cfg.OrdersListen), o.tlsFlags),
		role(app.RoleReconcile, "Hold the three stores against each other, and mend what may be mended",
			"reconcile looks at every unit and every reservation by its id, sends lost messages again under their own ids, has lost\n"+
				"events published again, takes over what the broker gave up on, and exports what it knows as metrics. It decides nothing,\n"+
				"so that it is safe at any time, several times over.",
			`--once --dry-run --redis 127.0.0.1:6379 --postgres "$DSN" --name-server 127.0.0.1:9876`,
			o.redisFlags, o.postgresFlags, o.mqFlags, o.reconcileFlags),
	}
	all := newAll(o, each)
	addOnce(o, each[len(each)-1])
	return append(each, all)
}

// ordersLong is what a client of the orders role needs to know.
const ordersLong = `orders says what became of a request, and takes payments and cancellations, from their owner only:

  GET  /v1/seckill/requests/{request_id}?activity_id=ID&sku_id=ID
  GET  /v1/seckill/reservations/{reservation_id}?activity_id=ID&sku_id=ID
  GET  /v1/seckill/orders/{order_id}
  POST /v1/seckill/orders/{order_id}/pay
  POST /v1/seckill/orders/{order_id}/cancel

code FOUND: status and order_id say what became of it. COMPENSATED is an end without a valid order, and reason says
which: REJECTED_NO_FINAL_STOCK, EXPIRED and so on. code PROCESSING: not decided, or not known yet. It is no refusal:
ask again about once a second, and do not buy again; most orders are there within 3 s, and after an outage it may take
minutes. code NOT_ACCEPTED: the activity is over, and this request never was accepted. GET /openapi.yaml says the rest;
seckill token mints a token for curl.`

// commandAll runs all roles in one process.
const commandAll = "all"

// newAll takes the flags of each role.
func newAll(o *options, each []*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: commandAll, Short: "Run all roles in one process, for one small machine", Args: noArgs,
		Long: "all runs every role in this process; access serves on --listen, orders on --orders-listen. It prints a ready line\n" +
			"for each role, and ends as a whole. Run the roles apart where one must not take the others with it.",
		Example: `  seckill all --config seckill.yaml
  seckill all --redis 127.0.0.1:6379 --name-server 127.0.0.1:9876 --postgres "$DSN"    # with SECKILL_TOKEN_KEY=ID:SECRET`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runRoles(cmd.Context(), cmd) },
	}
	for _, role := range each {
		cmd.Flags().AddFlagSet(role.Flags())
	}
	cmd.Flags().StringVar(&o.cfg.OrdersListen, "orders-listen", o.cfg.OrdersListen, "address to serve orders on, port 0 for any")
	return cmd
}

// submitFlags bound the synchronous path.
func (o *options) submitFlags(f *pflag.FlagSet) {
	c := &o.cfg.Submit
	f.IntVar(&c.InFlight, "in-flight", c.InFlight, "requests that may wait for Redis; one more is RATE_LIMITED")
	f.IntVar(&c.Reservers, "reservers", c.Reservers, "reserve batches at Redis at once")
	f.DurationVar(&c.QueueWait, "queue-wait", c.QueueWait, "how long a request may wait for its batch before RATE_LIMITED")
	f.DurationVar(&c.ReserveTimeout, "reserve-timeout", c.ReserveTimeout, "bound of one reserve call")
	f.DurationVar(&c.SendTimeout, "send-timeout", c.SendTimeout, "how long an answer waits for the broker before QUEUED_PENDING_MESSAGE")
	f.DurationVar(&o.cfg.Redis.Hold, "hold", reservation.HoldDefault, "how long after its reservation a message may still become an order")
	f.DurationVar(&c.SendLinger, "send-linger", c.SendLinger, "how long a sender waits to fill a batch")
}
