package server

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/websocket"
)

const (
	// maxReceived is how much a client may send over a WebSocket, where it has nothing to say, before it is cut off.
	maxReceived = 64 << 10
	// closeTimeout is how long a client may take to read the end of a WebSocket.
	closeTimeout = 5 * time.Second
)

// isWebSocket reports whether a request wants its connection to become a WebSocket. A watch can; others ignore it, as
// an API server does.
func isWebSocket(r *http.Request) bool {
	if r.Method != http.MethodGet || r.ProtoMajor != 1 || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return false
	}
	return slices.ContainsFunc(strings.Split(r.Header.Get("Connection"), ","), func(option string) bool {
		return strings.EqualFold(strings.TrimSpace(option), "upgrade")
	})
}

// serve begins the answer of a watch, has tell write its events, and ends it as tell's error says.
func (st *stream) serve(ctx context.Context, req *request, send func(context.Context) error) {
	if _, ok := st.w.(http.Hijacker); !ok || !isWebSocket(req.http) {
		st.writeHeader()
		st.finish(send(ctx), &req.target)
		return
	}
	websocket.Server{Handshake: chooseSubprotocol, Handler: func(ws *websocket.Conn) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var reading sync.WaitGroup
		reading.Go(func() { // answers pings, and notices when the client is gone
			defer cancel()
			io.CopyN(io.Discard, ws, maxReceived) // however it ends, the watch does too
		})
		st.socket = ws
		st.finish(send(ctx), &req.target)
		ws.SetDeadline(time.Now().Add(closeTimeout)) // it frees a pong that nobody reads, too
		ws.Close()
		reading.Wait()
	}}.ServeHTTP(st.w, req.http)
}

// bearerSubprotocol is what the name of a subprotocol begins with that is a token: the way of a browser's
// WebSocket, which cannot set a header, to authenticate to an API server.
const bearerSubprotocol = "base64url.bearer.authorization.k8s.io."

// chooseSubprotocol answers with the first subprotocol that the client offers, whatever it is called, as an API
// server does for a watch, and never with one that is a token.
func chooseSubprotocol(c *websocket.Config, _ *http.Request) error {
	c.Protocol = slices.DeleteFunc(c.Protocol,
		func(name string) bool { return strings.HasPrefix(name, bearerSubprotocol) })
	c.Protocol = c.Protocol[:min(len(c.Protocol), 1)]
	return nil
}

// subprotocolToken returns the token among the subprotocols of a WebSocket. There must be exactly one, and another
// subprotocol beside it to answer with.
func subprotocolToken(r *http.Request) (token string, ok bool) {
	if !isWebSocket(r) {
		return "", false
	}
	tokens, others := 0, 0
	for _, name := range strings.Split(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",") {
		encoded, found := strings.CutPrefix(strings.TrimSpace(name), bearerSubprotocol)
		if !found {
			others++
			continue
		}
		tokens++
		decoded, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil {
			return "", false
		}
		token = string(decoded)
	}
	return token, tokens == 1 && others > 0
}
