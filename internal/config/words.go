package config

// words are the words of the variables, by their codes, padded to one length. They are one variable
// because boot writes to each memory page of such tables, and the linker sorts variables by size.
var words = struct {
	level, softcap, hardcap, balance, model, huge, tier, check, hint [8]string
}{
	level: [8]string{LogOff: "off", LogError: "error", LogWarn: "warn", LogInfo: "info",
		LogDebug: "debug"},
	softcap: [8]string{SoftcapReroute: "reroute", SoftcapWarn: "warn",
		SoftcapDemote: "demote", SoftcapFollow: "follow"},
	hardcap: [8]string{HardcapRouteSlow: "route_slow", HardcapFail: "fail"},
	balance: [8]string{BalanceAuto: "auto", BalanceNever: "0", BalanceAlways: "1"},
	model:   [8]string{ModelOff: "off", ModelCXL: "cxl"},
	huge: [8]string{HugeAuto: "auto", HugeOff: "off", HugeThp: "thp", Huge2M: "2m",
		Huge1G: "1g"},
	tier: [8]string{TierFast: "fast", TierNormal: "normal", TierSlow: "slow"},
	check: [8]string{CheckDeallocType: "dealloc_type_mismatch",
		CheckDeleteSize: "delete_size_mismatch"},
	hint: [8]string{HintHot: "hot", HintWarm: "warm", HintCold: "cold",
		HintPinFast: "pin_fast", HintPreferFast: "prefer_fast"},
}

// The words for codes. Reports, the log and the tool use them, too. A code without a word gets ""
// or another code's word.

// HintWord is the word for a Hint….
func HintWord(hint uint32) string { return words.hint[hint&7] }

// TierWord is the word for a Tier….
func TierWord(tier uint32) string { return words.tier[tier&7] }

// SoftcapWord is the word for a Softcap….
func SoftcapWord(code uint32) string { return words.softcap[code&7] }

// HardcapWord is the word for a Hardcap….
func HardcapWord(code uint32) string { return words.hardcap[code&7] }

// ModelWord is the word for a Model….
func ModelWord(code uint32) string { return words.model[code&7] }

// hintsAccepted are words.hint in a sentence.
const hintsAccepted = "hot, warm, cold, pin_fast or prefer_fast"

// asEither reads one of two words.
func (v value) asEither(dst *bool, no, yes string) bool {
	if v.isWord(no) {
		*dst = false
		return true
	}
	if v.isWord(yes) {
		*dst = true
		return true
	}
	return false
}

// setHugePages reads a word for all tiers, or a list of tier:word, separated by commas, which names
// a tier once at most. A tier that is not in the list stays unset.
func (s *Settings) setHugePages(v value) bool {
	if all := uint32(0); v.asHuge(&all) {
		for i := range s.Tiers {
			s.Tiers[i].HugePages = all
		}
		return true
	}
	var huge, named [4]uint32
	for i := uintptr(0); i <= v.n; {
		end := v.find(i, ',')
		colon := min(v.find(i, ':'), end)
		if colon == end {
			return false
		}
		tier := uint32(0)
		if !v.part(i, colon).asWord(&tier, &words.tier, TierCount) || named[tier&3] != 0 ||
			!v.part(colon+1, end).asHuge(&huge[tier&3]) {
			return false
		}
		named[tier&3] = 1
		i = end + 1
	}
	for i := range s.Tiers {
		s.Tiers[i].HugePages = huge[i]
	}
	return true
}

// asHuge reads a word for huge pages.
func (v value) asHuge(dst *uint32) bool {
	return v.n != 0 && v.asWord(dst, &words.huge, Huge1G+1)
}

// setSecure reads 0 or 1. A list of ,check=word may follow the 1, which names a check once at most.
func (s *Settings) setSecure(v value) bool {
	on, warn, named := false, uint32(0), uint32(0)
	end := v.find(0, ',')
	if !v.part(0, end).asSwitch(&on) || !on && end != v.n {
		return false
	}
	for i := end; i < v.n; i = end {
		end = v.find(i+1, ',')
		equals := min(v.find(i+1, '='), end)
		check, warns := uint32(0), false
		if equals == end || !v.part(i+1, equals).asWord(&check, &words.check, checkCount) ||
			named>>(check&7)&1 != 0 ||
			!v.part(equals+1, end).asEither(&warns, "abort", "warn") {
			return false
		}
		named |= 1 << (check & 7)
		if warns {
			warn |= 1 << (check & 7)
		}
	}
	s.Secure, s.SecureWarn = on, warn
	return true
}
