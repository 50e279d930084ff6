package tracing

// job is something for the goroutine that makes spans.
type job struct {
	attempt *attempt
	flushed chan struct{} // closed when everything before has become spans
}

// queue has a span made of at. It never blocks: what has no room is dropped and counted.
func (t *Telemetry) queue(at *attempt) {
	select {
	case <-t.stop:
		t.full.Add(1)
		return
	default:
	}
	select {
	case t.jobs <- job{attempt: at}:
	default:
		t.full.Add(1)
	}
}

// run is the loop that makes spans, until Shutdown; then it makes those that wait.
func (t *Telemetry) run() {
	defer close(t.stopped)
	for {
		select {
		case j := <-t.jobs:
			t.do(j)
		case <-t.stop:
			for {
				select {
				case j := <-t.jobs:
					t.do(j)
				default:
					return
				}
			}
		}
	}
}

func (t *Telemetry) do(j job) {
	if j.attempt != nil {
		j.attempt.emit(t.tracer)
	}
	if j.flushed != nil {
		close(j.flushed)
	}
}
