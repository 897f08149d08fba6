package server

import (
	"net/http/httptest"
	"testing"
)

func TestAnswersAreCompressedForThoseThatTakeIt(t *testing.T) {
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
