package border

type span struct{ owner *thread }

func (s *span) serve() { s.owner.makeRoom() }

func (s *span) free() { s.owner = nil }

func least() int { return most }
