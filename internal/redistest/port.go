package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken below the range that the kernel gives to outgoing
// connections, so that a server that restarts finds its port free.
const (
	lowestPort  = 10000
	highestPort = 32000
)

// freePort is a port that nobody listens on now. Another process may still take
// it first: callers try again.
func freePort() (int, error) {
	for range 100 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("probe port %d: %w", port, err)
		}
		return port, nil
	}
	return 0, errors.New("found no free port in 100 tries")
}
