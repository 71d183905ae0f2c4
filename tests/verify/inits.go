package verify

import "regexp"

// Inits lists the symbols by which the given packages would run code when the
// Go runtime starts. The data plane works long before that, so an initialiser
// would overwrite live state: package variables must be statically initialised.
//
//	p..inittask   what the runtime runs: the list of p's functions below
//	p.init        made by the compiler for variables that need code
//	p.init.0      func init() of the source
//	p.map.init.0  a map variable's initialiser, split off
func (img *Image) Inits(packages []string) []string {
	var found []string
	for _, p := range packages {
		re := regexp.MustCompile("^" + regexp.QuoteMeta(p) +
			`(\.\.inittask|(\.map)?\.init(\.\d+)?)$`)
		for _, s := range img.symbols {
			if re.MatchString(s) {
				found = append(found, s)
			}
		}
	}
	return found
}
