package follow

// Hot reports which regions are hot, that is hotter than the mean page of all known regions. A
// region that is not known is not hot.
func Hot(regions []Region) []bool {
	touches, bytes := 0.0, 0.0
	for i := range regions {
		if r := &regions[i]; r.Known {
			touches += r.Heat * float64(r.size())
			bytes += float64(r.size())
		}
	}
	hot := make([]bool, len(regions))
	for i := range regions {
		r := &regions[i]
		hot[i] = r.Known && r.Heat*bytes > touches
	}
	return hot
}
