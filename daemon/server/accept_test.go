package server

import (
	"net/http/httptest"
	"testing"
)

func TestAnswersAreCompressedIfTheClientAcceptsIt(t *testing.T) {
	for coding, want := range map[string]bool{
		"gzip": true, "deflate, gzip": true, "gzip;q=0.5, br": true, "GZIP": true, "br;q=1, gzip ; q=0.1": true,
		"": false, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;q=x": false, "br": false,
		"gzipped": false, "identity": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Encoding", coding)
		if got := acceptsGzip(r); got != want {
			t.Errorf("%q: %v", coding, got)
		}
	}
}

func TestFirstSupportedFormInAcceptIsUsed(t *testing.T) {
	for accept, want := range map[string]form{
		"":                 whole,
		"*/*":              whole,
		"application/json": whole,
		"application/vnd.kubernetes.protobuf,application/json": whole,
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io," +
			"application/json": asTable,
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
			"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1": metadata,
		"application/json;as=Table;v=v2;g=meta.k8s.io,application/json": whole,
	} {
		if got, err := formOf(accept); err != nil || got != want {
			t.Errorf("%q: %v, %v", accept, got, err)
		}
	}
	for _, accept := range []string{"application/vnd.kubernetes.protobuf", "text/html",
		"application/json;as=Chair;v=v1;g=meta.k8s.io"} {
		if _, err := formOf(accept); err == nil {
			t.Errorf("%q is accepted", accept)
		}
	}
}
