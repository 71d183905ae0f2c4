package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tieralloc/internal/config"
)

// prefix begins the names of the library's variables.
const prefix = "TA_"

// setting is one of the library's variables, as its parser describes it.
type setting struct {
	name     string // TA_FAST_SOFT
	accepts  string // what a good value looks like
	fallback string // the default
}

// settings lists all settings, in the library's order.
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

// settingNames lists the names of all settings.
func settingNames() []string {
	var names []string
	for _, s := range settings() {
		names = append(names, s.name)
	}
	return names
}

// flag returns the name of the setting's flag: fast-soft for TA_FAST_SOFT.
func (s setting) flag() string {
	if s.name == "TA_STATS_LIVE" {
		return "live"
	}
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s.name, prefix)), "_", "-")
}

// isSwitch reports whether the flag may be given without a value, which means 1.
func (s setting) isSwitch() bool {
	return strings.HasPrefix(s.accepts, "0 or 1") || strings.HasPrefix(s.accepts, "0, 1,")
}

// addSettingFlags adds a flag for each setting to cmd. The library's parser checks the values
// later.
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

// applySettingFlags returns env with the variables of the given flags, and the flags by the names
// of the variables. A flag with an empty value removes its variable.
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
