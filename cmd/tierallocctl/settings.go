package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tieralloc/internal/config"
)

// prefix begins the names of the library's variables.
const prefix = "TA_"

// setting is one of the library's variables, as its parser has it.
type setting struct {
	name     string // TA_FAST_SOFT
	accepts  string // what a good value looks like
	fallback string // what holds without one
}

// settings lists them all, in the library's order.
func settings() []setting {
	var list []setting
	for i := uintptr(0); ; i++ {
		name, accepts, fallback, ok := config.Describe(i)
		if !ok {
			return list
		}
		list = append(list, setting{name, accepts, fallback})
	}
}

// settingNames are the names alone.
func settingNames() []string {
	var names []string
	for _, s := range settings() {
		names = append(names, s.name)
	}
	return names
}

// flag is the name of the setting's flag: --fast-soft for TA_FAST_SOFT.
func (s setting) flag() string {
	if s.name == "TA_STATS_LIVE" {
		return "live"
	}
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s.name, prefix)), "_", "-")
}

// isSwitch says that the flag may stand alone, for 1.
func (s setting) isSwitch() bool {
	return strings.HasPrefix(s.accepts, "0 or 1") || strings.HasPrefix(s.accepts, "0, 1,")
}

// addSettingFlags gives cmd a flag for each setting. What they hold is for the
// library's parser to judge.
func addSettingFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	for _, s := range settings() {
		d := docOf(s.name)
		flags.String(s.flag(), "", "`"+d.placeholder+"`: "+d.text+" ("+s.name+")")
		if s.isSwitch() {
			flags.Lookup(s.flag()).NoOptDefVal = "1"
		}
		completeValues(cmd, s)
	}
}

// applySettingFlags returns env with the variables of those flags that were given,
// and the flags by the names of the variables. A flag with an empty value takes its
// variable away.
func applySettingFlags(flags *pflag.FlagSet, env environ) (environ, map[string]string) {
	given := map[string]string{}
	for _, s := range settings() {
		f := flags.Lookup(s.flag())
		if f.Changed {
			env = env.with(s.name, f.Value.String())
			given[s.name] = "--" + f.Name
		}
	}
	return env, given
}
