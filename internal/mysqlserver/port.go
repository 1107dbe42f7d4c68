package mysqlserver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
)

// freePort finds a loopback port that nothing listens on. It lies below the ports that systems hand to outgoing
// connections, so that a server can come back on it after a stop. Another process may still take it first: Start then
// tries another one.
func freePort(ctx context.Context) (int, error) {
	const low, high, tries = 20000, 32000, 200
	var last error
	for range tries {
		port := low + rand.IntN(high-low)
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 in %d tries: %w", tries, last)
}
