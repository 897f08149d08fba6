package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mirador-k8s/mirador/source"
)

func tooLargeStatus(cause metav1.StatusCause) *metav1.Status {
	s := statusObject(504, metav1.StatusReasonTimeout, "Too large resource version: 9, current: 3")
	s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{cause}, RetryAfterSeconds: 1}
	return s
}

func TestRefusalsAreClassified(t *testing.T) {
	plain := func(code int32) *metav1.Status { return statusObject(code, "", "no") }
	for name, c := range map[string]struct {
		status  *metav1.Status
		list    source.Reason
		watch   source.Reason
		initial source.Reason
	}{
		"410 Expired": {statusObject(410, metav1.StatusReasonExpired, "old"), source.Expired,
			source.Expired, source.Expired},
		"410 Gone": {statusObject(410, metav1.StatusReasonGone, "old"), source.Expired,
			source.Expired, source.Expired},
		"410": {plain(410), source.Expired, source.Expired, source.Expired},
		"504 ahead": {tooLargeStatus(metav1.StatusCause{Type: metav1.CauseTypeResourceVersionTooLarge}), source.Ahead,
			source.Ahead, source.Ahead},
		"504 ahead, 1.18": {tooLargeStatus(metav1.StatusCause{Message: "Too large resource version"}), source.Ahead,
			source.Ahead, source.Ahead},
		"504 ahead, 1.16": {statusObject(504, metav1.StatusReasonTimeout, "Too large resource version: 9"), source.Ahead,
			source.Ahead, source.Ahead},
		"504": {statusObject(504, metav1.StatusReasonTimeout, "slow"), source.Unavailable, source.Unavailable,
			source.Unavailable},
		"429": {plain(429), source.Throttled, source.Throttled, source.Throttled},
		"401": {plain(401), source.Denied, source.Denied, source.Denied},
		"403": {plain(403), source.Denied, source.Denied, source.Denied},
		"404": {plain(404), source.NotServed, source.NotServed, source.NotServed},
		"405": {plain(405), source.Unsupported, source.Unsupported, source.Unsupported},
		"406": {plain(406), source.Unsupported, source.Unsupported, source.Unsupported},
		"400": {plain(400), source.Unavailable, source.Unavailable, source.Unsupported},
		"422": {statusObject(422, metav1.StatusReasonInvalid, "forbidden"), source.Unavailable, source.Unavailable,
			source.Unsupported},
		"500": {plain(500), source.Unavailable, source.Unavailable, source.Unavailable},
		"502": {plain(502), source.Unavailable, source.Unavailable, source.Unavailable},
		"503": {plain(503), source.Unavailable, source.Unavailable, source.Unavailable},
	} {
		for _, enc := range encodings {
			t.Run(name+" "+enc.name, func(t *testing.T) {
				body := string(enc.object(t, c.status))
				s := typedPods(t, via(func(r *http.Request) (*http.Response, error) {
					return answer(r, int(c.status.Code), enc.contentType, strings.NewReader(body)), nil
				}))
				_, err := s.List(t.Context(), source.ListOptions{})
				wantReason(t, err, c.list)
				if !strings.HasPrefix(err.Error(), "list pods on api.test:6443: "+c.status.Message) {
					t.Errorf("says %q", err)
				}
				api, ok := errors.AsType[*apierrors.StatusError](err)
				if !ok || api.ErrStatus.Code != c.status.Code || api.ErrStatus.Reason != c.status.Reason {
					t.Errorf("client-go's error in it: %+v", api)
				}
				_, err = s.Watch(t.Context(), source.WatchOptions{})
				wantReason(t, err, c.watch)
				_, err = s.Watch(t.Context(), source.WatchOptions{InitialState: true})
				wantReason(t, err, c.initial)
			})
		}
	}
}

func TestRefusalThatIsNoStatusIsClassifiedByItsCode(t *testing.T) {
	for code, want := range map[int]source.Reason{
		410: source.Expired, 429: source.Throttled, 401: source.Denied, 403: source.Denied, 404: source.NotServed,
		405: source.Unsupported, 500: source.Unavailable, 503: source.Unavailable, 504: source.Unavailable,
	} {
		for _, contentType := range []string{"text/plain", jsonType, protobufType, ""} {
			s := typedPods(t, via(func(r *http.Request) (*http.Response, error) {
				return answer(r, code, contentType, strings.NewReader("not a status")), nil
			}))
			_, err := s.List(t.Context(), source.ListOptions{})
			wantReason(t, err, want)
		}
	}
}

func TestRetryAfterIsReadFromHeaderAndStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, code := range []int{429, 503} {
			for header, want := range map[string]time.Duration{
				"7": 7 * time.Second, "": 5 * time.Second, "soon": 5 * time.Second, "-3": 5 * time.Second,
				time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat): 9 * time.Second,
				"99999999999": time.Duration(1<<31-1) * time.Second,
			} {
				status := statusObject(int32(code), "", "busy")
				status.Details = &metav1.StatusDetails{RetryAfterSeconds: 5}
				body := string(encodeJSON(t, status))
				s := typedPods(t, via(func(r *http.Request) (*http.Response, error) {
					resp := answer(r, code, jsonType, strings.NewReader(body))
					resp.Header.Set("Retry-After", header)
					return resp, nil
				}))
				_, err := s.List(t.Context(), source.ListOptions{})
				if got := source.RetryAfter(err); got != want {
					t.Errorf("%d with Retry-After %q: wait %v, want %v", code, header, got, want)
				}
			}
		}
	})
}

func TestExpiredContinueTokenFailsTheListAsExpired(t *testing.T) {
	calls := 0
	s := typedPods(t, via(func(r *http.Request) (*http.Response, error) {
		if calls++; calls == 1 {
			return answer(r, 200, protobufType,
				strings.NewReader(string(encodeProtobuf(t, podList("42", "t1", pod("a", "7")))))), nil
		}
		return answer(r, 410, jsonType,
			strings.NewReader(string(encodeJSON(t,
				statusObject(410, metav1.StatusReasonExpired, "the token is too old"))))), nil
	}))
	items, _, err := listAll(t, s, source.ListOptions{})
	wantReason(t, err, source.Expired)
	if len(items) != 1 {
		t.Errorf("%d items before it", len(items))
	}
}

func TestBodyOfARefusalIsReadInBounds(t *testing.T) {
	read := 0
	s := typedPods(t, via(func(r *http.Request) (*http.Response, error) {
		return answer(r, 500, "text/plain", io.TeeReader(filler{}, counter{&read})), nil
	}))
	_, err := s.List(t.Context(), source.ListOptions{})
	wantReason(t, err, source.Unavailable)
	if read > maxErrorBody+1 || len(err.Error()) > 1000 {
		t.Errorf("read %d bytes and shows %d", read, len(err.Error()))
	}
}

type counter struct{ n *int }

func (c counter) Write(p []byte) (int, error) { *c.n += len(p); return len(p), nil }

func TestFailuresOfTheConnectionAreClassifiedAndNameTheHost(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		reason source.Reason
		next   string
	}{
		"refused": {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, source.Refused, "check that the API server runs"},
		"no name": {&net.DNSError{Err: "no such host", Name: "api.test"}, source.Unavailable, "check the host name"},
		"reset":   {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, source.Unavailable, "check the network"},
		"EOF":     {io.EOF, source.Unavailable, "check the network"},
	} {
		t.Run(name, func(t *testing.T) {
			s := typedPods(t, tweak(func(o *metav1.ListOptions) { o.Continue = "s3cret" }),
				via(func(r *http.Request) (*http.Response, error) {
					return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: c.err}
				}))
			_, err := s.List(t.Context(), source.ListOptions{})
			wantReason(t, err, c.reason)
			text := err.Error()
			if !strings.Contains(text, "list pods on api.test:6443: ") || !strings.Contains(text, c.next) {
				t.Errorf("says %q", text)
			}
			if strings.Contains(text, "s3cret") {
				t.Errorf("shows the query: %q", text)
			}
			if errors.Is(err, io.EOF) {
				t.Error("looks like the end of a list")
			}
		})
	}
}

func TestRefusedConnectionOnASocket(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := ln.Addr().String()
	ln.Close()
	s, err := Raw(&rest.Config{Host: "http://user:s3cret@" + host, BearerToken: "s3cret"}, podsGVR, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.List(t.Context(), source.ListOptions{})
	wantReason(t, err, source.Refused)
	if !strings.Contains(err.Error(), host) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("says %q", err)
	}
}

func TestConnectionThatBreaksBetweenEventsIsUnavailable(t *testing.T) {
	for _, enc := range encodings {
		frame := enc.frame(t, "ADDED", enc.object(t, pod("a", "7")))
		for _, cause := range []error{io.ErrUnexpectedEOF, syscall.ECONNRESET} {
			s := typedPods(t, append(enc.options, via(func(r *http.Request) (*http.Response, error) {
				return answer(r, 200, enc.contentType, io.MultiReader(strings.NewReader(string(frame)), failing{cause})), nil
			}))...)
			changes, err := watchAll(t, s, source.WatchOptions{})
			wantReason(t, err, source.Unavailable)
			if len(changes) != 1 || !errors.Is(err, cause) {
				t.Errorf("%s: %d changes, %v", enc.name, len(changes), err)
			}
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestReaderThatGivesNothingDoesNotSpin(t *testing.T) {
	s := typedPods(t, via(func(r *http.Request) (*http.Response, error) {
		return answer(r, 200, protobufType, failing{nil}), nil
	}))
	_, err := watchAll(t, s, source.WatchOptions{})
	wantReason(t, err, source.Unavailable)
	if !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

func TestErrorsOfTheContextAreWrapped(t *testing.T) {
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		t.Run(fmt.Sprint(cause), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if cause == context.Canceled {
					cancel()
				}
				defer cancel()
				s := typedPods(t, via(func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}))
				if _, err := s.List(ctx, source.ListOptions{}); !errors.Is(err, cause) {
					t.Errorf("list: %v", err)
				}
				if _, err := s.Watch(ctx, source.WatchOptions{}); !errors.Is(err, cause) {
					t.Errorf("watch: %v", err)
				}
			})
		})
	}
}
