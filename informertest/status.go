package informertest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TooLargeVersion returns the Status of a request for a version that the server has not reached yet: 504 with the
// cause ResourceVersionTooLarge.
func TooLargeVersion(asked, current uint64) *metav1.Status {
	st := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", asked, current),
		1).Status()
	st.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version"}}
	return &st
}

func tooLarge(asked, current uint64) error {
	return &apierrors.StatusError{ErrStatus: *TooLargeVersion(asked, current)}
}

func tooOld(asked, oldest uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", asked, oldest))
}

func notFound(r *resource, name string) error {
	return apierrors.NewNotFound(r.gvr.GroupResource(), name)
}

// statusFor returns the Status that the API server sends with an HTTP code.
func statusFor(code int, retryAfter time.Duration, verb string, gr schema.GroupResource, name string) metav1.Status {
	seconds := int((retryAfter + time.Second - 1) / time.Second)
	var err *apierrors.StatusError
	switch code {
	case http.StatusForbidden:
		err = apierrors.NewForbidden(gr, name,
			fmt.Errorf("user cannot %s resource %q in API group %q", verb, gr.Resource, gr.Group))
	case http.StatusUnauthorized:
		err = apierrors.NewUnauthorized("Unauthorized")
	case http.StatusGone:
		err = apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.")
	case http.StatusTooManyRequests:
		err = apierrors.NewTooManyRequests("too many requests, please try again later", seconds)
	case http.StatusInternalServerError:
		err = apierrors.NewInternalError(errors.New("injected"))
	case http.StatusServiceUnavailable:
		err = apierrors.NewServiceUnavailable("the server is currently unable to handle the request")
	case http.StatusGatewayTimeout:
		err = apierrors.NewTimeoutError("request did not complete within the allowed duration", seconds)
	default:
		err = apierrors.NewGenericServerResponse(code, verb, gr, name, http.StatusText(code), seconds, false)
	}
	if seconds > 0 {
		if err.ErrStatus.Details == nil {
			err.ErrStatus.Details = &metav1.StatusDetails{}
		}
		err.ErrStatus.Details.RetryAfterSeconds = int32(seconds)
	}
	return err.ErrStatus
}

func writeStatus(w http.ResponseWriter, f form, st metav1.Status) {
	if st.Details != nil && st.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(st.Details.RetryAfterSeconds)))
	}
	w.Header().Set("Content-Type", f.mediaType())
	w.WriteHeader(int(st.Code))
	w.Write(f.statusDocument(st))
}
