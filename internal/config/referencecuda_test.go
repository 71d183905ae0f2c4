package config

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

var partPattern = regexp.MustCompile(`^([0-9]*)(?:\.([0-9]+))?(%?)$`)

// refer stores the good value of the variable TA_CUDA and what.
func (c *plainCUDA) refer(what, val string) (accepts, using string, ok bool) {
	word := asciiLower(val)
	either := func(dst *bool, no, yes string) (string, string, bool) {
		return no + " or " + yes, no, choose(dst, map[string]bool{no: false, yes: true}, word)
	}
	size, isSize := referSize(val)
	bytes, isBytes := referBytes(val)
	switch what {
	case "":
		return "0 or 1", "1", choose(&c.enable, switches, val)
	case "_REUSE":
		return either(&c.event, "sync", "event")
	case "_ASYNC":
		return either(&c.async, "driver", "heap")
	case "_SUBALLOC":
		return either(&c.all, "small", "all")
	case "_ON_HARDCAP":
		return either(&c.spill, "fail", "spill")
	case "_ZERO":
		return either(&c.zero, "0", "1")
	case "_LEAKS":
		return either(&c.leaks, "0", "1")
	case "_EXPANDABLE":
		return "0 or 1", "1", choose(&c.expandable, switches, val)
	case "_MANAGED":
		return either(&c.managed, "0", "1")
	case "_SOFT":
		return sizes, "no soft cap", store(&c.soft, size, isSize)
	case "_HARD":
		return sizes, "no hard cap", store(&c.hard, size, isSize)
	case "_SPILL_HARD":
		return sizes, "half of the host's memory", store(&c.spillHard, size, isSize)
	case "_PROPORTION":
		return "a part of the device's memory such as 0.25 or 25%, above 0 and up to 1",
			"no hard cap", c.referPart(val)
	case "_SEGMENT_SIZE":
		return "2M to 64G, in steps of 2M (an integer, or one with K, M or G)", "20M",
			store(&c.segment, size, isSize && size%(2<<20) == 0 && size <= 64<<30)
	case "_CACHE_LIMIT":
		return "0 (keep nothing) to 64T (an integer, or one with K, M, G or T)", "no limit",
			store(&c.cacheLimit, bytes, isBytes)
	case "_WARMUP":
		return "sizes and numbers of blocks such as 4K:50,64K:20,1M:10, at most 16 of them, each " +
				"number from 1 to 1000000",
			"no warm-up", c.referWarmup(val)
	case "_BW":
		bw, good := referRate(val)
		return rates, "no limit", store(&c.bw, bw, good)
	case "_LAT":
		d, good := referTime(val, 1e9)
		return lats, "0", store(&c.lat, d, good)
	case "_TRACE":
		return tmplMsg, "no file", store(&c.trace, val, isTemplate(val))
	case "_SNAPSHOT":
		return tmplMsg, "no file", store(&c.snapshot, val, isTemplate(val))
	}
	return "", "", true
}

// referPart computes exactly, but for decimals after the ninth, which are dropped.
func (c *plainCUDA) referPart(val string) bool {
	m := partPattern.FindStringSubmatch(val)
	if m == nil || m[1] == "" && m[2] == "" {
		return false
	}
	whole, _ := new(big.Rat).SetString("0" + m[1] + "." + m[2] + "0")
	x, _ := new(big.Rat).SetString("0" + m[1] + "." + m[2][:min(9, len(m[2]))] + "0")
	most := big.NewRat(1, 1)
	if m[3] != "" {
		most.SetInt64(100)
	}
	if whole.Cmp(most) > 0 {
		return false
	}
	x.Quo(x, most)
	x.Mul(x, big.NewRat(1<<17, 1)) // in halves of a part
	halves := new(big.Int).Quo(x.Num(), x.Denom()).Uint64()
	parts := (halves + 1) / 2
	return store(&c.proportion, parts, parts > 0)
}

func (c *plainCUDA) referWarmup(val string) bool {
	var warm []Warm
	for _, item := range strings.Split(val, ",") {
		name, number, found := strings.Cut(item, ":")
		size, isSize := referSize(name)
		n, err := strconv.ParseUint(number, 10, 64)
		if !found || !isSize || err != nil || strings.HasPrefix(number, "+") || n < 1 ||
			n > 1_000_000 {
			return false
		}
		warm = append(warm, Warm{size, n})
	}
	return store(&c.warm, warm, len(warm) <= 16)
}
