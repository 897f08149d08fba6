// Package chaos breaks a real cluster, and the way to it, under informers that are
// at work, and looks at what becomes of them. It has a [Proxy], through which
// connections can be cut, slowed, starved and left half open, and tests.
//
// The test of the name TestChaos runs two sets of informers side by side, ours and
// client-go's stock ones, each through a proxy of its own, while writers change
// objects all the time. It brings one fault after the other over both. After each
// fault the mirrors and what the handlers were told must equal the server, keys and
// versions; in the end no goroutine is left, and the API server's own audit log says
// how many requests each set sent: ours may have sent 1.2 times as many as client-go's
// and no more.
//
//	go test ./dev/chaos                       # each fault once, with short timeouts
//	go test ./dev/chaos -v -args -minutes 5   # again and again, with everybody's default timeouts
//	go test ./dev/chaos -v -args -fault cut   # only those that have this in their name
package chaos
