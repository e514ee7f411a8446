package order

import (
	"sync"
	"testing"

	"github.com/hotsku/hotsku/system/seckill"
)

// BenchmarkOrders sells 10,000 units an iteration: two workers, batches of
// 100, every message a new user's. orders/s is the figure.
func BenchmarkOrders(b *testing.B) { // R1.5
	const orders, batch, workers = 10_000, 100, 2
	f := setup(b)
	for b.Loop() {
		b.StopTimer()
		sku := f.sku(orders)
		batches := make(chan []Delivery, orders/batch)
		for user := int64(1); user <= orders; user += batch {
			var m []seckill.OrderCreateMessage
			for i := range int64(batch) {
				m = append(m, f.reserve(sku, user+i))
			}
			batches <- f.deliver(m...)
		}
		close(batches)
		p := f.processor()
		b.StartTimer()
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for deliveries := range batches {
					if err := p.Process(b.Context(), deliveries); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got := p.Stats().Orders.Load(); got != orders {
			b.Fatalf("%d orders", got)
		}
	}
	b.ReportMetric(float64(orders)*float64(b.N)/b.Elapsed().Seconds(), "orders/s")
}
