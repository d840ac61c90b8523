package engine

import (
	"bufio"
	"errors"
	"io"
	"sync"
	"time"
)

// A Backend answers requests. Steps and Share, which are asked for while it works, tell what
// [Alive] says.
type Backend interface {
	Answer(*Request, []byte) (*Reply, []byte, error)
	Steps() uint64
	Share() float64
}

// Reasoned is an error that carries llama.cpp's own words about a model that it refuses.
type Reasoned interface {
	error
	Refusal() (reason string, log []string)
}

// pulse is how often the engine says that it is alive.
const pulse = time.Second

// Serve answers the requests that come from in until it ends, when it calls gone, which ends
// the process: the parent is no more, whatever llama.cpp is at.
func Serve(in io.Reader, out io.Writer, b Backend, gone func()) error {
	w := &frameWriter{w: bufio.NewWriterSize(out, 1<<20)}
	type incoming struct {
		request Request
		data    []byte
		err     error
	}
	requests := make(chan incoming)
	go func() {
		r := bufio.NewReaderSize(in, 1<<20)
		for {
			var i incoming
			i.data, i.err = readFrame(r, &i.request)
			if i.err == io.EOF {
				gone()
			}
			requests <- i
			if i.err != nil {
				return
			}
		}
	}()
	for i := range requests {
		if i.err != nil {
			return i.err
		}
		if err := answer(w, b, &i.request, i.data); err != nil {
			return err
		}
	}
	return nil
}

// answer answers one request, with signs of life meanwhile.
func answer(w *frameWriter, b Backend, request *Request, data []byte) error {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(pulse):
				w.write(&Reply{Alive: &Alive{Steps: b.Steps(), Share: b.Share()}}, nil)
			}
		}
	}()
	reply, answer, err := b.Answer(request, data)
	close(stop)
	<-stopped
	if err != nil {
		reply, answer = &Reply{Error: err.Error()}, nil
		if r, ok := errors.AsType[Reasoned](err); ok {
			reply.Error, reply.Log = r.Refusal()
			reply.Refused = true
		}
	}
	if reply == nil {
		reply = &Reply{}
	}
	return w.write(reply, answer)
}

// A frameWriter writes whole frames.
type frameWriter struct {
	mu sync.Mutex
	w  *bufio.Writer
}

func (w *frameWriter) write(message any, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := writeFrame(w.w, message, data); err != nil {
		return err
	}
	return w.w.Flush()
}
