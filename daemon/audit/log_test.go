package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a log. stop ends it and returns the error of Run.
func start(t *testing.T, l *Log) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func event(id string, bytes int) *auditv1.Event {
	return &auditv1.Event{AuditID: types.UID(id), RequestURI: "/" + strings.Repeat("x", bytes)}
}

// ids returns the IDs of the events in a file's text, and fails if a line is not an event.
func ids(t *testing.T, text []byte) (out []string) {
	t.Helper()
	for line := range strings.Lines(string(text)) {
		var e auditv1.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("%v in %.200q", err, line)
		}
		out = append(out, string(e.AuditID))
	}
	return out
}

func TestFilesRotateAreBoundedAndOnlyForTheOwner(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	l, err := Open(Options{Path: path, MaxSize: 1, MaxBackups: 2})
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, l)
	const events = 500
	for i := range events {
		l.Record(event(fmt.Sprint(i), 10_000))
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := l.Counts(); got != (Counts{Written: events}) {
		t.Errorf("counts %+v", got)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 3 {
		t.Errorf("%d files, want the newest and two older ones", len(files))
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 || info.Size() > 1<<20 {
			t.Errorf("%s has mode %v and %d bytes", f.Name(), info.Mode(), info.Size())
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if got := ids(t, text); f.Name() == "audit.log" && got[len(got)-1] != fmt.Sprint(events-1) {
			t.Errorf("the newest event in the newest file is %s", got[len(got)-1])
		}
	}
}

// A log that is started again goes on with its file, and removes old ones.
func TestALogThatIsStartedAgainAppendsAndRemovesOldFiles(t *testing.T) {
	dir := t.TempDir()
	name := func(age time.Duration) string { return "audit-" + time.Now().UTC().Add(-age).Format(rotated) + ".log" }
	recent, old, others := name(time.Hour), name(25*time.Hour), []string{"audit-x.log", "other-" + name(48*time.Hour)}
	for _, name := range append(others, recent, old) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "audit.log")
	for i := range 2 {
		l, err := Open(Options{Path: path, MaxAge: 1})
		if err != nil {
			t.Fatal(err)
		}
		stop := start(t, l)
		l.Record(event(fmt.Sprint(i), 0))
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(t, text); strings.Join(got, "") != "01" {
		t.Errorf("the file has the events %v", got)
	}
	for name, want := range map[string]bool{recent: true, old: false, others[0]: true, others[1]: true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}

	f, err := openFile(&Options{Path: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.maxSize = 1
	for range 3 { // within a millisecond
		if _, err := f.Write([]byte("{}\n")); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the next file does not have the mode of the last one: %v, %v", info.Mode(), err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "audit-2*.log")); err != nil || len(files) != 4 {
		t.Errorf("after three rotations there are %v, %v", files, err)
	}
	if err := os.Remove(path); err != nil { // as another program does that rotates logs
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("{}\n")); err != nil {
		t.Errorf("write after the file was removed: %v", err)
	}
}

func TestEventsAreLostWhileTheFileCannotBeRotated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := openFile(&Options{Path: filepath.Join(dir, "audit.log")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.maxSize = 4
	write := func() error {
		_, err := f.Write([]byte("{}\n"))
		return err
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+"-gone"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := write(); err == nil {
			t.Error("an event was written to a file that is gone")
		}
	}
	if err := os.Rename(dir+"-gone", dir); err != nil {
		t.Fatal(err)
	}
	if err := write(); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("there are %v, %v", files, err)
	}
}

func TestALogThatCannotBeWrittenIsAnErrorAtTheStart(t *testing.T) {
	dir := t.TempDir()
	for _, o := range []Options{{}, {Path: dir}, {Path: filepath.Join(dir, "x"), MaxSize: -1},
		{Path: filepath.Join(dir, "x"), MaxAge: -1}, {Path: filepath.Join(dir, "absent", "x")},
		{Path: filepath.Join(dir, "x"), MaxBackups: -1}} {
		if _, err := Open(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// disk is a writer whose writes wait until it is released, and fail with err.
type disk struct {
	release chan struct{}
	writing chan struct{}

	mu      sync.Mutex
	text    bytes.Buffer
	err     error
	partial int // bytes that are written before a failure
}

func (d *disk) Write(b []byte) (int, error) {
	if d.writing != nil {
		d.writing <- struct{}{}
		<-d.release
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		n, _ := d.text.Write(b[:d.partial])
		return n, d.err
	}
	return d.text.Write(b)
}

func (d *disk) Close() error { return nil }

func (d *disk) fail(err error, partial int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err, d.partial = err, partial
}

func TestASlowDiskBlocksNoCallerAndTakesBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{release: make(chan struct{}), writing: make(chan struct{}, 10_000)}
		var said bytes.Buffer
		l := newLog(d, slog.New(slog.NewTextHandler(&said, nil)))
		stop := start(t, l)
		l.Record(event("first", 0))
		<-d.writing
		const size = 100_000
		for range 2 * maxWaiting / size {
			l.Record(event("more", size))
		}
		if l.size > maxWaiting || l.size < maxWaiting-2*size {
			t.Errorf("%d bytes wait", l.size)
		}
		dropped := l.Counts().Dropped
		if dropped == 0 || strings.Count(said.String(), "audit events are lost") != 1 {
			t.Errorf("%d events were dropped, and the log says\n%s", dropped, said.String())
		}
		time.Sleep(reportEvery)
		l.Record(event("more", size))
		if got := strings.Count(said.String(), "audit events are lost"); got != 2 {
			t.Errorf("the log mentions it %d times", got)
		}
		kept := 1 + len(l.waiting)
		close(d.release)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := len(ids(t, d.text.Bytes())); got != kept || l.Counts().Written != uint64(kept) {
			t.Errorf("%d of %d events were written, %+v", got, kept, l.Counts())
		}
		l.Record(event("late", 0))
		if got := l.Counts().Dropped; got != dropped+2 {
			t.Errorf("after the end %d events are dropped", got)
		}
	})
}

func TestAfterAFullDiskEveryLineIsAnEventAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		l := newLog(d, nil)
		stop := start(t, l)
		record := func(id string) {
			l.Record(event(id, 100))
			synctest.Wait()
		}
		record("a")
		d.fail(errors.New("no space left on device"), 10)
		record("b")
		d.fail(errors.New("no space left on device"), 0)
		record("c")
		d.fail(nil, 0)
		record("d")
		record("e")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(d.text.String(), "\n"), "\n")
		if len(lines) != 4 { // with the incomplete one
			t.Fatalf("%d lines: %q", len(lines), lines)
		}
		if got := ids(t, []byte(lines[0]+"\n"+lines[2]+"\n"+lines[3]+"\n")); strings.Join(got, "") != "ade" {
			t.Errorf("got %v", got)
		}
		if got := l.Counts(); got != (Counts{Written: 3, Dropped: 2}) {
			t.Errorf("counts %+v", got)
		}
	})
}

func TestADiskThatStaysSlowDoesNotDelayTheEndForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{release: make(chan struct{}), writing: make(chan struct{}, 10_000)}
		l := newLog(d, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		for range 100 {
			l.Record(event("x", maxWrite))
		}
		cancel()
		for range 3 {
			<-d.writing
			time.Sleep(drainTimeout / 2)
			d.release <- struct{}{}
		}
		go func() { // a write that may have begun before the time was over
			for range d.writing {
				d.release <- struct{}{}
			}
		}()
		if err := <-ended; err == nil {
			t.Error("the events that were not written are not mentioned")
		}
		close(d.writing)
		if got := l.Counts(); got.Written+got.Dropped != 100 || got.Dropped < 90 {
			t.Errorf("counts %+v", got)
		}
	})
}
