package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
)

// A stack is a suspect if it meets three conditions.
//
// Nearly all of its blocks are still in use. A program that frees most blocks of a stack has not
// forgotten them; the few that may be freed are those of a thread or a connection that ended.
//
// Its bytes in use grow. The share of them that was allocated in the last half of the profiled time
// shows that. Allocation at a constant rate gives a share of one half. Tables from the start of
// the program give 0; a share of leakOld lets growth slow down to a third of its earlier rate. A
// share near 1 proves nothing: the program may just have loaded a file. Constant growth that began
// after a part t of the time gives 0.5/(1-t), so leakRecent lets it begin as late as t = 0.44, and
// growth may accelerate as the third power of time. Stacks above leakRecent are counted apart,
// because a longer profile can tell.
//
// At least leakBlocks of its blocks in use were sampled. The share is an estimate, and of fewer
// blocks it is chance.
const (
	leakKept   = 0.95
	leakOld    = 0.25
	leakRecent = 0.9
	leakBlocks = 4
)

const leakFrames = 8 // shown of a stack

// leakFigures are the values of a stack that decide.
type leakFigures struct{ allocated, blocks, bytes, recent, sampled int64 }

// A leakStack is a stack with its figures in all tiers and threads.
type leakStack struct {
	stack []profileFrame
	leakFigures
}

// growth is what the blocks of a stack do over time.
type growth int

const (
	noGrowth growth = iota
	steadyGrowth
	lateGrowth // too late to tell
)

// growth judges a stack.
func (l *leakFigures) growth() growth {
	recent := float64(l.recent) / float64(l.bytes)
	switch {
	case l.blocks <= 0 || l.bytes <= 0 || float64(l.blocks) < leakKept*float64(l.allocated):
		return noGrowth
	case l.sampled < leakBlocks || recent < leakOld:
		return noGrowth
	case recent > leakRecent:
		return lateGrowth
	}
	return steadyGrowth
}

// leaks writes the stacks that grow, those of the host and those of each device.
func (f *profileFile) leaks(w io.Writer, lines int) error {
	if err := f.leaksOf(w, "", lines); err != nil {
		return err
	}
	for _, m := range memories(f) {
		fmt.Fprintln(w)
		if err := f.leaksOf(w, m, lines); err != nil {
			return err
		}
	}
	return nil
}

// leaksOf writes the stacks of a memory that grow, those first that grew most; at most lines of
// them, 0 for all.
func (f *profileFile) leaksOf(w io.Writer, memory string, lines int) error {
	all, err := f.leakStacks(memory)
	if err != nil {
		return err
	}
	title, notes := f.title(), f.notes()
	if memory != "" {
		title, notes = memory, nil
	}
	var growing, late []*leakStack
	inUse, grown, lateBytes := int64(0), int64(0), int64(0)
	for _, l := range all {
		inUse += l.bytes
		switch l.growth() {
		case steadyGrowth:
			growing = append(growing, l)
			grown += l.bytes
		case lateGrowth:
			late = append(late, l)
			lateBytes += l.bytes
		}
	}
	slices.SortStableFunc(growing, func(a, b *leakStack) int {
		return cmp.Compare(b.recent, a.recent)
	})
	fmt.Fprintf(w, "%s: %s in use\n", title, amount(inUse, "bytes"))
	writeLines(w, notes)
	if len(growing) == 0 {
		fmt.Fprintln(w, "no stack allocates steadily without freeing")
	} else {
		fmt.Fprintf(w, "%s %s steadily without freeing: %s. A cache that fills does so as well: "+
			"the memory may still be reachable\n", plural(len(growing), "stack"),
			english.PluralWord(len(growing), "allocates", "allocate"), amount(grown, "bytes"))
	}
	shown := growing
	if lines > 0 && lines < len(shown) {
		shown = shown[:lines]
	}
	for _, l := range shown {
		l.write(w)
	}
	if more := len(growing) - len(shown); more > 0 {
		fmt.Fprintf(w, "\nand %s (--lines 0 shows all)\n", plural(more, "stack"))
	}
	if len(late) > 0 {
		fmt.Fprintf(w, "\n%s, %s, nearly all from the last half of the time: a longer "+
			"profile tells whether growth goes on\n", plural(len(late), "other stack"),
			amount(lateBytes, "bytes"))
	}
	return nil
}

// leakStacks adds up the samples of a memory by stack: threads, tiers and addresses within a line
// do not matter.
func (f *profileFile) leakStacks(memory string) (all []*leakStack, err error) {
	var at [5]int
	for i, name := range []string{"alloc_objects", "inuse_objects", "inuse_space", "recent_space",
		"inuse_samples"} {
		if memory != "" {
			name = deviceTypes + name
		}
		if at[i] = f.typeIndex(name); at[i] < 0 {
			return nil, errors.New(f.path + ": --leaks needs the sample type " + name + ", as " +
				"TA_PROFILE=FILE writes it; it has " + strings.Join(f.typeNames(), ", "))
		}
	}
	byStack := map[string]*leakStack{}
	for _, s := range f.profile.Sample {
		if memoryOf(s) != memory {
			continue
		}
		stack := frames(s)
		var key strings.Builder
		for _, frame := range stack {
			key.WriteString(frame.name + "\n" + frame.where() + "\n")
		}
		l := byStack[key.String()]
		if l == nil {
			l = &leakStack{stack: stack}
			byStack[key.String()] = l
			all = append(all, l)
		}
		l.allocated += s.Value[at[0]]
		l.blocks += s.Value[at[1]]
		l.bytes += s.Value[at[2]]
		l.recent += s.Value[at[3]]
		l.sampled += s.Value[at[4]]
	}
	return all, nil
}

// write writes a stack and its figures.
func (l *leakStack) write(w io.Writer) {
	fmt.Fprintf(w, "\n%s in %s, %s of it from the last half of the time\n",
		amount(l.bytes, "bytes"), plural(uint64(l.blocks), "block"), amount(l.recent, "bytes"))
	shown := l.stack[:min(len(l.stack), leakFrames)]
	t := newTable()
	for _, frame := range shown {
		t.AppendRow([]any{"  " + shortName(frame.name), frame.where()})
	}
	if len(shown) > 0 {
		fmt.Fprintln(w, t.Render())
	}
	if more := len(l.stack) - len(shown); more > 0 {
		fmt.Fprintf(w, "  and %s\n", plural(more, "caller"))
	}
}
