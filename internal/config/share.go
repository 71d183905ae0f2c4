package config

// sameMemory is the fallback of a cap that another tier's cap replaces.
const sameMemory = ""

// ShareCaps gives tiers that are one memory the same soft and hard cap, the smallest that any of
// them has. account[t] is the first tier with tier t's memory. It drops larger caps, and a soft cap
// above the hard one. It writes a line for each dropped cap and returns their number.
func (s *Settings) ShareCaps(envp uintptr, account *[4]uintptr, fd uintptr) (bad uintptr) {
	for first := uintptr(0); first < uintptr(TierCount); first++ {
		if account[first&3] != first {
			continue
		}
		soft, hard := s.strictest(account, first, tierSoft), s.strictest(account, first, tierHard)
		bad += s.shareCap(envp, account, soft, tierSoft, fd)
		bad += s.shareCap(envp, account, hard, tierHard, fd)
		if most := s.Tiers[hard&3].Hard; most != 0 && s.Tiers[soft&3].Soft > most {
			complainPair(envp, variableOf(soft, tierSoft), "at most ", variableOf(hard, tierHard),
				noSoft, fd)
			bad++
			for tier := first; tier < uintptr(TierCount); tier++ {
				if account[tier&3] == first {
					s.Tiers[tier&3].Soft = 0
				}
			}
		}
	}
	return bad
}

// strictest returns the tier of an account with the smallest cap of a kind, or the account's first
// tier if none has one.
func (s *Settings) strictest(account *[4]uintptr, first, kind uintptr) (tier uintptr) {
	tier = first
	for other := first + 1; other < uintptr(TierCount); other++ {
		if n := *s.capAt(other, kind); account[other&3] == first && n != 0 &&
			(*s.capAt(tier, kind) == 0 || n < *s.capAt(tier, kind)) {
			tier = other
		}
	}
	return tier
}

// shareCap copies the cap of a tier to all others of its account.
func (s *Settings) shareCap(envp uintptr, account *[4]uintptr, from, kind,
	fd uintptr) (bad uintptr) {
	least := *s.capAt(from, kind)
	for tier := account[from&3]; tier < uintptr(TierCount); tier++ {
		if account[tier&3] != account[from&3] {
			continue
		}
		if *s.capAt(tier, kind) > least {
			complainPair(envp, variableOf(tier, kind), "at most ", variableOf(from, kind),
				sameMemory, fd)
			bad++
		}
		*s.capAt(tier, kind) = least
	}
	return bad
}

func (s *Settings) capAt(tier, kind uintptr) *uint64 {
	if kind == tierSoft {
		return &s.Tiers[tier&3].Soft
	}
	return &s.Tiers[tier&3].Hard
}

// variableOf returns a tier's variable of a kind.
func variableOf(tier, kind uintptr) uintptr { return varTiers + tier*tierVars + kind }
