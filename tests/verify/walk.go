package verify

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Violation is one broken rule, and the calls that lead from an export to it.
type Violation struct {
	Where string // function+offset
	What  string
	Path  []string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s\n\tpath: %s", v.Where, v.What, strings.Join(v.Path, " → "))
}

// Result is the outcome of a walk. Depth counts the return address that the
// gate pushes, but not the gate's own frame.
type Result struct {
	Exports    int
	Reached    int
	Depth      int64
	DepthPath  []string
	Violations []Violation
}

var exportName = regexp.MustCompile(`^_cgoexp_[0-9a-f]+_(ta_go_\w+)$`)

// Exports maps the data-plane exports' names (ta_go_x) to their Go entry points.
func (img *Image) Exports() map[string]*Func {
	m := map[string]*Func{}
	for _, fn := range img.funcs {
		if g := exportName.FindStringSubmatch(fn.Name); g != nil {
			m[g[1]] = fn
		}
	}
	return m
}

// walker holds the state of one walk.
//
//	parent[f] is the function from which f was first reached, nil for an export;
//	deep[f] is set once f and everything below it has been measured
type walker struct {
	img        *Image
	rules      *Rules
	summaries  map[*Func]*summary
	parent     map[*Func]*Func
	deep       map[*Func]measure
	stack      []*Func // the functions being measured, outermost first
	violations []Violation
}

// measure is the most stack that a function needs, its return address not
// counted, and the callee on the deepest way.
type measure struct {
	bytes int64
	next  *Func
}

// Walk checks everything that the given exports reach.
func Walk(img *Image, rules *Rules, exports []*Func) Result {
	w := &walker{img: img, rules: rules, summaries: map[*Func]*summary{}, parent: map[*Func]*Func{},
		deep: map[*Func]measure{}}
	w.reachAll(exports)
	res := Result{Exports: len(exports), Reached: len(w.summaries)}
	for _, e := range exports {
		m := w.measure(e)
		total := m.bytes + 8
		if total > StackLimit {
			w.violations = append(w.violations, Violation{e.Name,
				fmt.Sprintf("needs %d bytes of stack, more than %d", total, StackLimit),
				w.deepest(e)})
		}
		if total > res.Depth {
			res.Depth, res.DepthPath = total, w.deepest(e)
		}
	}
	res.Violations = w.violations
	return res
}

// reachAll visits breadth first, so that each reported path is a shortest one.
func (w *walker) reachAll(exports []*Func) {
	queue := []*Func{}
	for _, e := range exports {
		w.parent[e] = nil
		queue = append(queue, e)
	}
	for ; len(queue) > 0; queue = queue[1:] {
		fn := queue[0]
		if w.summaries[fn] != nil {
			continue
		}
		s := analyse(w.img, w.rules, fn)
		w.summaries[fn] = s
		for _, p := range s.problems {
			w.report(fn, p.at, p.what)
		}
		for _, st := range s.sites {
			callee := w.resolve(fn, st)
			if callee == nil {
				continue
			}
			if _, seen := w.parent[callee]; !seen {
				w.parent[callee] = fn
				queue = append(queue, callee)
			}
		}
	}
}

// resolve names a site's target and reports it when it may not be reached. It
// returns nil for what is not walked.
func (w *walker) resolve(fn *Func, st site) *Func {
	callee := w.img.funcAt(st.target)
	for _, name := range ownCode {
		if own := w.img.named[name]; own != nil && st.target == own.Addr {
			return nil
		}
	}
	if callee == nil {
		w.report(fn, st.at, "leaves Go (C code or a PLT stub): "+st.text)
		return nil
	}
	v := w.rules.judge(callee.Name)
	switch {
	case v.reason != "":
		w.report(fn, st.at, fmt.Sprintf("reaches %s: %s", callee.Name, v.reason))
		return nil
	case !v.walk:
		return nil
	case st.target != callee.Addr:
		w.report(fn, st.at, fmt.Sprintf("enters %s in the middle, at +%#x", callee.Name,
			st.target-callee.Addr))
		return nil
	}
	return callee
}

// callee is resolve once everything has been reported.
func (w *walker) callee(st site) *Func {
	fn := w.img.funcAt(st.target)
	if fn == nil || fn.Addr != st.target || w.summaries[fn] == nil {
		return nil
	}
	return fn
}

func (w *walker) report(fn *Func, at uint64, what string) {
	where := fmt.Sprintf("%s+%#x", fn.Name, at-fn.Addr)
	w.violations = append(w.violations, Violation{where, what, w.path(fn)})
}

// path is a shortest way from an export to fn.
func (w *walker) path(fn *Func) []string {
	var path []string
	for f := fn; f != nil; f = w.parent[f] {
		path = append(path, f.Name)
	}
	slices.Reverse(path)
	return path
}

// measure finds the deepest stack below fn, and recursion on the way. A cycle
// is cut where it closes, and reported.
func (w *walker) measure(fn *Func) measure {
	if m, ok := w.deep[fn]; ok {
		return m
	}
	if i := slices.Index(w.stack, fn); i >= 0 {
		path := w.path(fn)
		for _, f := range w.stack[i+1:] {
			path = append(path, f.Name)
		}
		w.violations = append(w.violations, Violation{fn.Name, "recursion", append(path, fn.Name)})
		return measure{}
	}
	w.stack = append(w.stack, fn)
	m := measure{bytes: w.summaries[fn].frame}
	for _, st := range w.summaries[fn].sites {
		callee := w.callee(st)
		if callee == nil {
			continue
		}
		below := st.depth + w.measure(callee).bytes
		if st.call {
			below += 8 // the return address
		}
		// At equal depth the way with a callee tells more.
		if below > m.bytes || m.next == nil && below == m.bytes {
			m = measure{below, callee}
		}
	}
	w.stack = w.stack[:len(w.stack)-1]
	w.deep[fn] = m
	return m
}

// deepest lists the functions on the deepest way below fn, each with what its
// own frame takes. The bound on the length covers recursion, already reported.
func (w *walker) deepest(fn *Func) []string {
	var path []string
	for f := fn; f != nil && len(path) < 100; f = w.deep[f].next {
		path = append(path, fmt.Sprintf("%s (%d)", f.Name, w.summaries[f].frame))
	}
	return path
}
