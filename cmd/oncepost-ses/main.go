// Command oncepost-ses is the SES stand-in alone: a server that takes mails over the protocol of
// AWS SES, keeps them, and shows them on a page. It sends nothing, and needs neither Temporal nor
// MySQL.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "oncepost-ses:", err)
		os.Exit(1)
	}
}
