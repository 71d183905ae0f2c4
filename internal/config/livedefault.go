package config

// LiveIsDefault reports whether TA_STATS_LIVE is 1 and names no file of its own.
func (s *Settings) LiveIsDefault() bool {
	return value{s.StatsLive.Addr(), s.StatsLive.Len()}.isFrom(0, liveTemplate)
}
