package main

import (
	"fmt"
	"net"
	"strings"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

// banner says where the stand-in is and how to use it.
func banner(f flags, addr net.Addr) string {
	base, loopback := reachable(addr)
	var b strings.Builder
	fmt.Fprintf(&b, "oncepost-ses: a stand-in for AWS SES. Mails stay here; nothing is sent.\n\n")
	fmt.Fprintf(&b, "  inbox   %s/\n", base)
	fmt.Fprintf(&b, "  API     export AWS_ENDPOINT_URL_SES=%s\n", base)
	fmt.Fprintf(&b, "          (any AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY will do)\n")
	if f.Dir == "" {
		fmt.Fprintf(&b, "  mails   in memory only; --dir DIR keeps them\n")
	} else {
		fmt.Fprintf(&b, "  mails   kept in %s\n", f.Dir)
	}
	if f.Fault != "" {
		fmt.Fprintf(&b, "  fault   %s, until cleared on the page or by DELETE %s/_standin/faults\n", f.Fault, base)
	}
	if !loopback {
		fmt.Fprintf(&b, "\n  WARNING: %s is not loopback. This is a stand-in without authentication: whoever\n"+
			"  reaches it can read every mail, send any, and script failures.\n", addr)
	}
	b.WriteString("\n  Ctrl-C stops it.\n")
	return b.String()
}

// reachable returns a URL under which this machine reaches addr, and whether only it does.
func reachable(addr net.Addr) (base string, loopback bool) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return "http://" + addr.String(), false
	}
	if tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", tcp.Port), false
	}
	return "http://" + tcp.String(), tcp.IP.IsLoopback()
}

func presetNames() string {
	var names []string
	for _, p := range sesstandin.Presets() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}
