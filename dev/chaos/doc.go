// Package chaos injects faults into a real cluster, and into the connections to it, while informers run, and checks
// the informers. It has a proxy, through which connections can be cut, slowed, throttled and left half open, and
// tests.
//
// TestChaos runs two sets of informers side by side, ours and client-go's stock ones, each through its own proxy,
// while writers change objects all the time. It injects one fault after the other into both. After each fault the
// stores and the sums of the handlers' events must equal the server, keys and versions; at the end no goroutine is
// left, and the API server's audit log shows how many requests each set sent: ours at most 1.2 times as many as
// client-go's.
//
//	go test ./dev/chaos                       # each fault once, with short timeouts
//	go test ./dev/chaos -v -args -minutes 5   # repeatedly, with default timeouts
//	go test ./dev/chaos -v -args -fault cut   # only the faults whose name contains this
package chaos
