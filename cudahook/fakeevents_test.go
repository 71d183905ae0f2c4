package cudahook

func (f *fake) event(r *Request, handle uint64) *fakeEvent {
	e := f.events[handle]
	if e == nil {
		f.t.Fatalf("event %#x does not exist", handle)
	}
	return e
}

func (f *fake) actEvent(r *Request, action Action) {
	if capturing() && action != ActEventCreate && action != ActEventQuery {
		r.Result = 900
		return
	}
	switch action {
	case ActEventCreate:
		f.handles++
		r.Value = f.handles
		f.events[f.handles] = &fakeEvent{context: r.Context}
	case ActEventRecord:
		e := f.event(r, r.OnEvent)
		if of := r.OnStream >> 8; of != 0 && of != e.context && f.known(of) {
			r.Result = 400 // CUDA_ERROR_INVALID_HANDLE: a stream of another context
			return
		}
		s := f.stream(e.context, r.OnStream)
		e.recorded, e.snap = true, clock{s.key: len(s.items)}
		e.snap.merge(s.clock)
	case ActEventRecordContext:
		if f.noContext {
			r.Result = 801 // CUDA_ERROR_NOT_SUPPORTED
			return
		}
		e := f.event(r, r.OnEvent)
		if e.context != r.OnContext {
			f.t.Fatalf("an event of context %#x is recorded in %#x", e.context, r.OnContext)
		}
		e.recorded, e.snap = true, clock{}
		for k, s := range f.streams {
			if k.context == r.OnContext {
				e.snap.merge(clock{k: len(s.items)})
				e.snap.merge(s.clock)
			}
		}
	case ActEventQuery:
		e := f.event(r, r.OnEvent)
		if !e.recorded {
			f.t.Fatal("an event is asked for that was never recorded")
		}
		if !f.idle(e.snap) {
			r.Result = ErrorNotReady
		}
	case ActStreamWait:
		s, e := f.stream(r.Context, r.OnStream), f.event(r, r.OnEvent)
		s.items = append(s.items, fakeItem{need: e.snap})
		s.clock.merge(e.snap)
		s.clock[s.key] = len(s.items)
	default:
		f.t.Fatalf("unknown action %d", action)
	}
}

// known reports whether there is such a context. A stream's handle begins with its own.
func (f *fake) known(context uint64) bool {
	_, ok := f.device[context]
	return ok
}
