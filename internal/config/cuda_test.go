package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestCUDA: each case is what one variable, or several, do to the defaults, and no
// line.
func TestCUDA(t *testing.T) {
	many := strings.Repeat("2M:3,", 15) + "1:1"
	sixteen := make([]Warm, 16)
	for i := range sixteen {
		sixteen[i] = Warm{2 << 20, 3}
	}
	sixteen[15] = Warm{1, 1}
	for _, c := range []struct {
		env  string
		want func(*plainCUDA)
	}{
		{"TA_CUDA=1 TA_CUDA_REUSE=sync TA_CUDA_SUBALLOC=small TA_CUDA_ON_HARDCAP=fail " +
			"TA_CUDA_ZERO=0 TA_CUDA_LEAKS=0 TA_CUDA_MANAGED=0 TA_CUDA_EXPANDABLE=1 " +
			"TA_CUDA_ASYNC=driver",
			func(*plainCUDA) {}},
		{"TA_CUDA=0", func(c *plainCUDA) { c.enable = false }},
		{"TA_CUDA_REUSE=Event", func(c *plainCUDA) { c.event = true }},
		{"TA_CUDA_SUBALLOC=ALL", func(c *plainCUDA) { c.all = true }},
		{"TA_CUDA_ON_HARDCAP=spill", func(c *plainCUDA) { c.spill = true }},
		{"TA_CUDA_ZERO=1", func(c *plainCUDA) { c.zero = true }},
		{"TA_CUDA_LEAKS=1", func(c *plainCUDA) { c.leaks = true }},
		{"TA_CUDA_EXPANDABLE=0", func(c *plainCUDA) { c.expandable = false }},
		{"TA_CUDA_ASYNC=Heap", func(c *plainCUDA) { c.async = true }},
		{"TA_CUDA_MANAGED=1", func(c *plainCUDA) { c.managed = true }},
		{"TA_CUDA_SOFT=1G TA_CUDA_HARD=1G", func(c *plainCUDA) { c.soft, c.hard = 1<<30, 1<<30 }},
		{"TA_CUDA_SPILL_HARD=3G", func(c *plainCUDA) { c.spillHard = 3 << 30 }},
		{"TA_CUDA_PROPORTION=1", func(c *plainCUDA) { c.proportion = ProportionOne }},
		{"TA_CUDA_PROPORTION=100%", func(c *plainCUDA) { c.proportion = ProportionOne }},
		{"TA_CUDA_PROPORTION=1.000", func(c *plainCUDA) { c.proportion = ProportionOne }},
		{"TA_CUDA_PROPORTION=0.25", func(c *plainCUDA) { c.proportion = 1 << 14 }},
		{"TA_CUDA_PROPORTION=.25", func(c *plainCUDA) { c.proportion = 1 << 14 }},
		{"TA_CUDA_PROPORTION=25%", func(c *plainCUDA) { c.proportion = 1 << 14 }},
		{"TA_CUDA_PROPORTION=12.5%", func(c *plainCUDA) { c.proportion = 1 << 13 }},
		{"TA_CUDA_PROPORTION=0.3333333333333333", func(c *plainCUDA) { c.proportion = 21845 }},
		{"TA_CUDA_PROPORTION=0.6666666666666666", func(c *plainCUDA) { c.proportion = 43691 }},
		{"TA_CUDA_PROPORTION=0.0000152587890625", func(c *plainCUDA) { c.proportion = 1 }},
		{"TA_CUDA_PROPORTION=0.5 TA_CUDA_HARD=8G",
			func(c *plainCUDA) { c.proportion, c.hard = 1<<15, 8<<30 }},
		{"TA_CUDA_SEGMENT_SIZE=2M", func(c *plainCUDA) { c.segment = 2 << 20 }},
		{"TA_CUDA_SEGMENT_SIZE=64g", func(c *plainCUDA) { c.segment = 64 << 30 }},
		{"TA_CUDA_SEGMENT_SIZE=4194304", func(c *plainCUDA) { c.segment = 4 << 20 }},
		{"TA_CUDA_CACHE_LIMIT=0", func(c *plainCUDA) { c.cacheLimit = 0 }},
		{"TA_CUDA_CACHE_LIMIT=3G", func(c *plainCUDA) { c.cacheLimit = 3 << 30 }},
		{"TA_CUDA_BW=10G TA_CUDA_LAT=2us", func(c *plainCUDA) { c.bw, c.lat = 10<<30, 2000 }},
		{"TA_CUDA_WARMUP=4K:50,64K:20,1M:10", func(c *plainCUDA) {
			c.warm = []Warm{{4 << 10, 50}, {64 << 10, 20}, {1 << 20, 10}}
		}},
		{"TA_CUDA_WARMUP=1:1000000", func(c *plainCUDA) { c.warm = []Warm{{1, 1_000_000}} }},
		{"TA_CUDA_WARMUP=" + many, func(c *plainCUDA) { c.warm = sixteen }},
		{"TA_CUDA_TRACE=/t/%e.%p.csv", func(c *plainCUDA) { c.trace = "/t/%e.%p.csv" }},
		{"TA_CUDA_SNAPSHOT=/t/%p", func(c *plainCUDA) { c.snapshot = "/t/%p" }},
	} {
		want := with(func(o *outcome) { c.want(&o.cuda) })
		entries := strings.Split(c.env, " ")
		if got := run(t, entries); !got.equal(want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.env, got, want)
		}
		if got := reference(entries); !got.equal(want) {
			t.Errorf("the reference on %s:\n got %+v\nwant %+v", c.env, got, want)
		}
	}
}

// TestBadCUDA: one line each, and the defaults.
func TestBadCUDA(t *testing.T) {
	const (
		part = `a part of the device's memory such as 0.25 or 25%, above 0 and up to 1; using ` +
			`no hard cap`
		segment = `2M to 64G, in steps of 2M (an integer, or one with K, M or G); using 20M`
		limit   = `0 (keep nothing) to 64T (an integer, or one with K, M, G or T); using no limit`
		warm    = `sizes and numbers of blocks such as 4K:50,64K:20,1M:10, at most 16 of them,` +
			` each number from 1 to 1000000; using no warm-up`
	)
	for _, c := range []struct {
		name   string
		values []string
		want   string
	}{
		{"TA_CUDA", []string{"2", "on", "01"}, `0 or 1; using 1`},
		{"TA_CUDA_REUSE", []string{"events", "1", "sync,event"}, `sync or event; using sync`},
		{"TA_CUDA_SUBALLOC", []string{"large", "0"}, `small or all; using small`},
		{"TA_CUDA_ON_HARDCAP", []string{"route_slow", "managed"}, `fail or spill; using fail`},
		{"TA_CUDA_ZERO", []string{"yes"}, `0 or 1; using 0`},
		{"TA_CUDA_LEAKS", []string{"2"}, `0 or 1; using 0`},
		{"TA_CUDA_EXPANDABLE", []string{"2", "auto"}, `0 or 1; using 1`},
		{"TA_CUDA_ASYNC", []string{"1", "pool", "heap,"}, `driver or heap; using driver`},
		{"TA_CUDA_MANAGED", []string{"2", "yes", "01", " 1", "prefer_fast"}, `0 or 1; using 0`},
		{"TA_CUDA_SOFT", []string{"0", "1GB"}, sizes + `; using no soft cap`},
		{"TA_CUDA_HARD", []string{"0", "25%"}, sizes + `; using no hard cap`},
		{"TA_CUDA_SPILL_HARD", []string{"0", "half"}, sizes + `; using half of the host's memory`},
		{"TA_CUDA_PROPORTION", []string{"0", "0.0", "0%", "1.1", "101%", "25", "-0.5", "0.5x", ".",
			"%", ".%", "1.", "0,5", "1e-1",
			"0.5%%", "1.0000000001", "100.00000000001%", "0.0000001", "0.00000000000001", " 0.5",
			"NaN", "18446744073709551617"}, part},
		{"TA_CUDA_SEGMENT_SIZE", []string{"0", "1M", "3M", "2097153", "66G", "64T", "big"},
			segment},
		{"TA_CUDA_CACHE_LIMIT", []string{"-1", "65T", "none", "1 G"}, limit},
		{"TA_CUDA_WARMUP", []string{"4K", "4K:", ":5", "4K:0", "0:5", "4K:50,", ",4K:50",
			"4K:50;8K:1", "4K:1M", "4K:1000001",
			"4K:5:5", "4K:-1", "4K:+1", "4K: 5", "65T:1", "4K:18446744073709551617",
			strings.Repeat("4K:1,", 16) + "4K:1", strings.Repeat("4K:1,", 16)}, warm},
		{"TA_CUDA_BW", []string{"1", "fast"}, rates + `; using no limit`},
		{"TA_CUDA_LAT", []string{"2s", "7"}, lats + `; using 0`},
		{"TA_CUDA_TRACE", []string{"%q", "a%"}, tmplMsg + `; using no file`},
		{"TA_CUDA_SNAPSHOT", []string{"%q", "a%"}, tmplMsg + `; using no file`},
	} {
		for _, val := range c.values {
			want := with(func(o *outcome) {
				o.lines = []string{fmt.Sprintf(`tieralloc: %s="%s": expected %s`, c.name, val,
					c.want)}
			})
			entries := []string{c.name + "=" + val}
			if got := run(t, entries); !got.equal(want) {
				t.Errorf("%s:\n got %+v\nwant %+v", entries, got, want)
			}
			if got := reference(entries); !got.equal(want) {
				t.Errorf("the reference on %s:\n got %+v\nwant %+v", entries, got, want)
			}
		}
	}
	want := with(func(o *outcome) {
		o.cuda.hard = 1 << 30
		o.lines = []string{`tieralloc: TA_CUDA_SOFT="2G": expected at most TA_CUDA_HARD="1G"; ` +
			`using no soft cap`}
	})
	if got := run(t, []string{"TA_CUDA_SOFT=2G", "TA_CUDA_HARD=1G"}); !got.equal(want) {
		t.Errorf("soft over hard: %+v", got)
	}
}
