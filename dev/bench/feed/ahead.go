package feed

import (
	"io"
	"sync"
)

// ahead reads from another reader in advance, on its own goroutine, which ends with the input or with Close. Making a
// million pods and reading them then run in parallel.
type ahead struct {
	chunks  chan []byte
	current []byte
	err     error // the input's error; set before chunks is closed
	once    sync.Once
	stop    chan struct{}
}

func readAhead(r io.Reader) *ahead {
	a := &ahead{chunks: make(chan []byte, 16), stop: make(chan struct{})}
	go func() {
		defer close(a.chunks)
		for {
			chunk := make([]byte, 64<<10)
			n, err := io.ReadFull(r, chunk)
			if n > 0 {
				select {
				case a.chunks <- chunk[:n]:
				case <-a.stop:
					a.err = io.ErrClosedPipe
					return
				}
			}
			if err != nil {
				if a.err = err; err == io.ErrUnexpectedEOF {
					a.err = io.EOF // the last chunk is shorter than the others
				}
				return
			}
		}
	}()
	return a
}

func (a *ahead) Read(p []byte) (int, error) {
	for len(a.current) == 0 {
		chunk, ok := <-a.chunks
		if !ok {
			return 0, a.err
		}
		a.current = chunk
	}
	n := copy(p, a.current)
	a.current = a.current[n:]
	return n, nil
}

// Close ends the goroutine that reads ahead.
func (a *ahead) Close() error {
	a.once.Do(func() { close(a.stop) })
	return nil
}
