package stats

import "tieralloc/internal/config"

// The words for codes. Those of the configuration are the words of the variables
// that set them. The tables are padded to a power of two; a code beyond a table, which
// no report of this library has, is taken as one of its words or nothing.

// backendNames are the words of Report.Backend.
var backendNames = [2]string{BackendSimulated: "simulated", BackendNuma: "numa"}

// hintNames are the words for config.Hint….
var hintNames = [8]string{
	config.HintHot: "hot", config.HintWarm: "warm", config.HintCold: "cold",
	config.HintPinFast: "pin_fast", config.HintPreferFast: "prefer_fast",
}

// softcapNames are the words for config.Softcap….
var softcapNames = [4]string{
	config.SoftcapReroute: "reroute", config.SoftcapWarn: "warn", config.SoftcapDemote: "demote",
}

// hardcapNames are the words for config.Hardcap….
var hardcapNames = [2]string{config.HardcapRouteSlow: "route_slow", config.HardcapFail: "fail"}

// throttleNames are the words of TA_THROTTLE.
var throttleNames = [2]string{"account", "sleep"}

// hugeNames are the words for config.Huge…; without a wish the mapping is left to the
// system's own setting.
var hugeNames = [8]string{
	config.HugeUnset: "default", config.HugeOff: "off", config.HugeThp: "thp",
	config.Huge2M: "2M", config.Huge1G: "1G",
}
