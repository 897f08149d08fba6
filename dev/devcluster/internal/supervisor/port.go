package supervisor

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The API server's port is below the range from which systems take ports for outgoing connections (32768 on Linux,
// 49152 elsewhere), so that it is still free when the API server restarts.
const (
	firstPort = 20000
	lastPort  = 32000
)

// freePort returns preferred if it is free, or else a random free port.
func freePort(preferred int) (int, error) {
	if preferred != 0 && portIsFree(preferred) {
		return preferred, nil
	}
	for range 200 {
		if p := firstPort + rand.IntN(lastPort-firstPort); portIsFree(p) {
			return p, nil
		}
	}
	return 0, fmt.Errorf("found no free port between %d and %d on 127.0.0.1", firstPort, lastPort)
}

func portIsFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
