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
	// maxReceived is how many bytes a client may send over a WebSocket before it is cut off. It has no reason to send
	// any.
	maxReceived = 64 << 10
	// closeTimeout is how long a client may take to read the last frame of a WebSocket.
	closeTimeout = 5 * time.Second
)

// isWebSocket reports whether a request asks for a WebSocket. Only watches can be one; other requests ignore it, as an
// API server does.
func isWebSocket(r *http.Request) bool {
	if r.Method != http.MethodGet || r.ProtoMajor != 1 || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return false
	}
	return slices.ContainsFunc(strings.Split(r.Header.Get("Connection"), ","), func(option string) bool {
		return strings.EqualFold(strings.TrimSpace(option), "upgrade")
	})
}

// serve begins the answer of a watch, calls send to write its events, and ends the watch with the error of send.
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
			io.CopyN(io.Discard, ws, maxReceived) // the watch ends when this returns, with or without an error
		})
		st.socket = ws
		st.finish(send(ctx), &req.target)
		ws.SetDeadline(time.Now().Add(closeTimeout)) // also ends a pong that the client does not read
		ws.Close()
		reading.Wait()
	}}.ServeHTTP(st.w, req.http)
}

// bearerSubprotocol is the prefix of a subprotocol that contains a token. A browser's WebSocket cannot set a header
// and authenticates to an API server in this way.
const bearerSubprotocol = "base64url.bearer.authorization.k8s.io."

// chooseSubprotocol selects the first subprotocol that the client offers, whatever its name, as an API server does for
// a watch, but never one that contains a token.
func chooseSubprotocol(c *websocket.Config, _ *http.Request) error {
	c.Protocol = slices.DeleteFunc(c.Protocol,
		func(name string) bool { return strings.HasPrefix(name, bearerSubprotocol) })
	c.Protocol = c.Protocol[:min(len(c.Protocol), 1)]
	return nil
}

// subprotocolToken returns the token among the subprotocols of a WebSocket. There must be exactly one token, and
// another subprotocol for the answer.
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
