package identity

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/mirador-k8s/mirador/dev/testissuer"
)

// bobsToken is the token of a user in each fixture that has static tokens.
const bobsToken = "static-2"

// chainFixture has an Authenticator with the administrator's token, static tokens, client certificates and a front
// proxy.
type chainFixture struct {
	*Authenticator
	clients, proxies, unknown *testissuer.Authority
}

func newChainFixture(t *testing.T) *chainFixture {
	t.Helper()
	f := &chainFixture{clients: testissuer.NewAuthority(t, "clients"), proxies: testissuer.NewAuthority(t, "proxies"),
		unknown: testissuer.NewAuthority(t, "unknown")}
	a, err := New(Options{
		TokenAuthFile: write(t, "tokens.csv", "static-1,alice,1001,\"dev,ops\"\nstatic-2,bob,1002\n"),
		ClientCAFile:  write(t, "clients.pem", f.clients.PEM),
		RequestHeader: RequestHeader{ClientCAFile: write(t, "proxies.pem", f.proxies.PEM),
			AllowedNames: []string{"proxy", "other-proxy"}, UsernameHeaders: []string{"X-Remote-User"},
			UIDHeaders: []string{"X-Remote-Uid"}, GroupHeaders: []string{"X-Remote-Group"},
			ExtraHeaderPrefixes: []string{"X-Remote-Extra-"}}})
	check(t, err)
	f.Authenticator = a
	return f
}

func TestStaticTokensGiveUserAndGroups(t *testing.T) {
	f := newChainFixture(t)
	r := bearer("static-1")
	wantUser(t, f.Authenticator, r, `alice "1001" [dev ops system:authenticated]`)
	if len(r.Header) != 0 {
		t.Errorf("the headers of an authenticated request still have %v", r.Header)
	}
	without, err := New(Options{})
	check(t, err)
	wantRefused(t, without, bearer("static-1"), "")
	wantUser(t, f.Authenticator, bearer("static-2"), `bob "1002" [system:authenticated]`)
	wantRefused(t, f.Authenticator, bearer("static-3"), "invalid bearer token")
	wantRefused(t, f.Authenticator, request(), "")
}

// protocols returns a request for a WebSocket with subprotocols.
func protocols(lines ...string) *http.Request {
	r := request("Connection: Upgrade", "Upgrade: websocket")
	for _, line := range lines {
		r.Header.Add("Sec-WebSocket-Protocol", line)
	}
	return r
}

func subprotocol(token string) string {
	return "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))
}

func TestASubprotocolOfAWebSocketCanHaveTheToken(t *testing.T) {
	f := newChainFixture(t)
	const alice = `alice "1001" [dev ops system:authenticated]`
	for _, r := range []*http.Request{
		protocols(subprotocol("static-1") + ", v4.channel.k8s.io"),
		protocols("v4.channel.k8s.io", subprotocol("static-1")),
	} {
		wantUser(t, f.Authenticator, r, alice)
		if got := r.Header.Get("Sec-WebSocket-Protocol"); got != "v4.channel.k8s.io" {
			t.Errorf("the subprotocols of an authenticated request are %q; want them without the token", got)
		}
	}
	wantRefused(t, f.Authenticator, protocols(subprotocol("static-1")), "missing additional subprotocol")
	wantRefused(t, f.Authenticator, protocols(subprotocol("static-1"), subprotocol("static-2"), "x"), "multiple")
	wantRefused(t, f.Authenticator, protocols("base64url.bearer.authorization.k8s.io.!!", "x"), "encoding")
	wantRefused(t, f.Authenticator, protocols(subprotocol("\xff\xfe"), "x"), "invalid")
	wantRefused(t, f.Authenticator, protocols(subprotocol(""), "x"), "")
	wantRefused(t, f.Authenticator, protocols(subprotocol("static-3"), "x"), "invalid bearer token")
	plain := protocols(subprotocol("static-1"), "x")
	plain.Header.Del("Upgrade")
	wantRefused(t, f.Authenticator, plain, "")
}

func TestTheFirstAuthenticatorThatAcceptsTheRequestDecides(t *testing.T) {
	f := newChainFixture(t)
	carol := f.clients.Sign(t, "carol", "qa")
	const user = `carol "" [qa system:authenticated]`
	wantUser(t, f.Authenticator, with(bearer("static-1"), carol), user)
	wantUser(t, f.Authenticator, with(bearer("not-a-token"), carol), user)
	wantUser(t, f.Authenticator, with(bearer("static-1"), f.unknown.Sign(t, "mallory")),
		`alice "1001" [dev ops system:authenticated]`)
	wantRefused(t, f.Authenticator, with(bearer("not-a-token"), f.unknown.Sign(t, "mallory")), "unknown authority")
	wantUser(t, f.Authenticator, with(request("X-Remote-User: dave", "Authorization: Bearer static-1"),
		f.proxies.Sign(t, "proxy")), `dave "" [system:authenticated]`)
	wantUser(t, f.Authenticator, with(bearer("static-1"), f.proxies.Sign(t, "proxy")),
		`alice "1001" [dev ops system:authenticated]`)
}

// An identity that is not the administrator's token cannot have a name or group of the daemon, or look anonymous.
func TestReservedNamesAreRefused(t *testing.T) {
	f := newChainFixture(t)
	const reserved = `begin with "mirador:" are reserved`
	proxy := f.proxies.Sign(t, "proxy")
	wantRefused(t, f.Authenticator, with(request(), f.clients.Sign(t, "mirador:admin")), reserved)
	wantRefused(t, f.Authenticator, with(request(), f.clients.Sign(t, "eve", "mirador:administrators")), reserved)
	wantRefused(t, f.Authenticator, with(request(), f.clients.Sign(t, "eve", "dev", "mirador:x")), reserved)
	wantRefused(t, f.Authenticator, with(request(), f.clients.Sign(t, "system:anonymous")), "without a credential")
	wantRefused(t, f.Authenticator, with(request(), f.clients.Sign(t, "eve", "system:unauthenticated")),
		"without a credential")
	wantRefused(t, f.Authenticator, with(request("X-Remote-User: mirador:admin"), proxy), reserved)
	wantRefused(t, f.Authenticator, with(request("X-Remote-User: eve", "X-Remote-Group: dev",
		"X-Remote-Group: mirador:administrators"), proxy), reserved)
	wantUser(t, f.Authenticator, with(request("X-Remote-User: eve", "X-Remote-Group: administrators"), proxy),
		`eve "" [administrators system:authenticated]`)
}

// FuzzAuthenticate sends arbitrary headers. Only exact tokens may authenticate, and nothing may panic.
func FuzzAuthenticate(f *testing.F) {
	for _, seed := range []string{"", "Bearer", "Bearer ", "Bearer  static-1", "bearer static-1", "Bearer static-1 x",
		"Basic YTpi", "Bearer a.b.c", "Bearer ..", "Bearer {\"iss\":1}", "Bearer \x00", "Bearer e30.e30.e30"} {
		f.Add(seed, "v4.channel.k8s.io")
		f.Add("", seed+","+subprotocol(seed))
	}
	a, err := New(Options{TokenAuthFile: write(f, "tokens.csv", "static-1,alice,1001\n"),
		AuthenticationConfig: write(f, "config.yaml", testissuer.Configuration(
			testissuer.New(f, "one.example.com", nil).Entry(plainMapping)))})
	check(f, err)
	f.Fuzz(func(t *testing.T, authorization, offered string) {
		r := protocols(offered)
		r.Header.Set("Authorization", authorization)
		u, ok, err := a.Authenticate(r)
		if ok != (u != nil) || ok && err != nil {
			t.Fatalf("the result is %v, %t, %v", u, ok, err)
		}
		if ok && u.GetName() != "alice" {
			t.Fatalf("the request is one of %s", describe(u))
		}
	})
}
