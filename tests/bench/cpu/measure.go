package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// row is a workload's samples, by contender and round; where a contender failed in any
// round, it has none, and failed says why.
type row struct {
	name    string
	samples [][]sample
	failed  []string
}

// results is what a run of this command found.
type results struct {
	all    []contender
	rows   []row
	rounds int
	scale  int
	thread int
	absent []string // workloads that cannot run here, and why
}

// measure runs all workloads.
func (p *place) measure(ctx context.Context, list []workload, all []contender, rounds int,
	progress io.Writer) (*results, error) {
	r := &results{all: all, rounds: rounds, scale: p.scale, thread: p.threads}
	for i, w := range list {
		start := time.Now()
		j, err := w.prepare(p)
		var lack lacking
		if errors.As(err, &lack) {
			r.absent = append(r.absent, w.name+": "+lack.Error())
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		one, err := p.turns(ctx, w.name, j, all, rounds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		r.rows = append(r.rows, one)
		fmt.Fprintf(progress, "%d/%d %s: %.1f s\n", i+1, len(list), w.name,
			time.Since(start).Seconds())
	}
	if len(r.rows) == 0 {
		return nil, fmt.Errorf("there is nothing to run: %v", r.absent)
	}
	return r, nil
}

// turns lets the contenders take turns with one workload. Who goes first changes from
// round to round. A run that is not counted reads the program's files into memory, and tells
// the checksum. glibc's failure is an error; that of another takes it out of the row.
func (p *place) turns(ctx context.Context, name string, j job, all []contender, rounds int) (row,
	error) {
	r := row{name, make([][]sample, len(all)), make([]string, len(all))}
	first, err := p.once(ctx, j, all[0])
	if err != nil {
		return r, fmt.Errorf("%s: %w", all[0].name, err)
	}
	for i := range rounds {
		for k := range all {
			k = (k + i) % len(all)
			if r.failed[k] != "" {
				continue
			}
			s, err := p.once(ctx, j, all[k])
			if err == nil && s.sum != first.sum {
				err = fmt.Errorf("the checksum is %s, not %s", s.sum, first.sum)
			}
			switch {
			case ctx.Err() != nil:
				return r, ctx.Err()
			case err != nil && k == 0:
				return r, fmt.Errorf("%s: %w", all[k].name, err)
			case err != nil:
				r.failed[k], r.samples[k] = err.Error(), nil
			default:
				r.samples[k] = append(r.samples[k], s)
			}
		}
	}
	return r, nil
}
