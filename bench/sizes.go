package main

import (
	"fmt"
	"time"

	"github.com/oncepost/oncepost/starter"
)

type sizesCmd struct {
	Seconds int `default:"12" help:"How long a run should about take."`
}

// Run compares, in turn, a relay without any flag with hand-set numbers of starts in flight and sizes of pages.
func (c *sizesCmd) Run(b *bench) error {
	return b.each(func(w *world) error {
		for _, relays := range []int{1, 4} {
			for _, latency := range []time.Duration{time.Millisecond, 500 * time.Millisecond} {
				if err := c.compare(w, relays, latency); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (c *sizesCmd) compare(w *world, relays int, latency time.Duration) error {
	rows := min(200_000, int(float64(relays*1000*c.Seconds)/latency.Seconds()))
	var best float64
	var by starter.Config
	try := func(starts, page int) error {
		cfg := starter.Config{MaxStarts: starts, MaxPage: page, FixedSizes: true}
		rate, err := w.rate(relays, rows, latency, cfg)
		if rate > best {
			best, by = rate, cfg
		}
		return err
	}
	for _, n := range []int{64, 250, 1000} {
		if err := try(n, 800); err != nil {
			return err
		}
	}
	if err := try(by.MaxStarts, 8192); err != nil {
		return err
	}
	auto, err := w.rate(relays, rows, latency, starter.Config{})
	if err != nil {
		return err
	}
	fmt.Printf("%s sizes: %d relays, %s a start, %d rows: without flags %.0f rows/s, best by hand %.0f (%d in flight, pages of %d); ratio %.2f\n",
		w.name, relays, latency, rows, auto, best, by.MaxStarts, by.MaxPage, auto/best)
	return nil
}

// rate starts and deletes rows with so many relays.
func (w *world) rate(relays, rows int, latency time.Duration, cfg starter.Config) (float64, error) {
	if err := w.fill(rows, 500, 3); err != nil {
		return 0, err
	}
	began := time.Now()
	var all []*starter.Relay
	var stops []func() error
	for range relays {
		r, stop, err := w.relay(noop{latency: latency}, cfg)
		if err != nil {
			return 0, err
		}
		all, stops = append(all, r), append(stops, stop)
	}
	err := until(w.ctx, func() bool {
		total := int64(0)
		for _, r := range all {
			total += r.Stats().Deleted
		}
		return total >= int64(rows)
	})
	d := time.Since(began)
	for _, stop := range stops {
		err = firstError(err, stop())
	}
	return float64(rows) / d.Seconds(), err
}
