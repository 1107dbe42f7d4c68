package devstack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

// sendRate is the pretended account's, in mails a second. SES gives a new account 14; at that rate a mail of somebody who tries
// things out waits for the one before.
const sendRate = 1000

func (s *Stack) startInbox(ctx context.Context) (string, error) {
	inbox, err := sesstandin.New(sesstandin.Config{
		Quota:       sesstandin.Quota{MaxSendRate: sendRate},
		Dir:         filepath.Join(s.opts.Dir, "mails"),
		WorkflowURL: s.workflows() + "/{message_id}",
		Logger:      s.opts.Logger.With("component", "ses"),
	})
	if err != nil {
		return "", err
	}
	l, err := listen(ctx, s.memory.InboxPort)
	if err != nil {
		return "", errors.Join(err, inbox.Close())
	}
	s.inbox, s.inboxURL = inbox, "http://"+l.Addr().String()
	s.memory.InboxPort = l.Addr().(*net.TCPAddr).Port
	s.parts.run("inbox", func(ctx context.Context) error { return errors.Join(inbox.Serve(ctx, l), inbox.Close()) })
	return "SES stand-in, in this process", nil
}

// workflows is the web UI's page with the list of workflows.
func (s *Stack) workflows() string {
	return fmt.Sprintf("%s/namespaces/%s/workflows", s.temporal.UIURL(), s.temporal.Namespace())
}

// listen takes the remembered port when it is free, or else one below those that systems hand to outgoing connections,
// which is likely to be free at the next start.
func listen(ctx context.Context, remembered int) (net.Listener, error) {
	const low, high, tries = 20000, 32000, 200
	port := remembered
	var last error
	for range tries {
		if port == 0 {
			port = low + rand.IntN(high-low)
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return l, nil
		}
		last, port = err, 0
	}
	return nil, fmt.Errorf("no free port on 127.0.0.1 in %d tries: %w", tries, last)
}

// free tells whether a port can be listened on now.
func free(ctx context.Context, port int) bool {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	return err == nil && l.Close() == nil
}
