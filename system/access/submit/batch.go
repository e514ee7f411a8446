package submit

import "github.com/hotsku/hotsku/system/reservation"

// fill adds to batch what waits in queue, up to a script's batch. It never
// waits: under load the queue fills it.
func fill(batch []*ticket, queue <-chan *ticket) []*ticket {
	for len(batch) < reservation.BatchMax {
		select {
		case t, ok := <-queue:
			if !ok {
				return batch
			}
			batch = append(batch, t)
		default:
			return batch
		}
	}
	return batch
}

// splitFirstSKU parts the tickets of the first one's SKU from the others; a
// script call is for one SKU. Usually there are no others.
func splitFirstSKU(tickets []*ticket) (same, others []*ticket) {
	first := tickets[0].cmd
	for _, t := range tickets {
		if t.cmd.ActivityID == first.ActivityID && t.cmd.SKUID == first.SKUID {
			same = append(same, t)
		} else {
			others = append(others, t)
		}
	}
	return same, others
}
