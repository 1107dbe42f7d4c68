package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// screenshotsEnv names a folder that the pages are saved into as pictures, for the README.
const screenshotsEnv = "ONCEPOST_SCREENSHOTS"

var mailsOf = regexp.MustCompile(`its mails +(\S+)\?q=(\S+)`)

// The pages that a person is sent to show what they should, in a real browser: the inbox, a mail, and by the mail's link
// its workflow in Temporal's web UI.
func TestPagesInBrowser(t *testing.T) {
	demo := start(t, devEnv(t, quickest(), filepath.Join(t.TempDir(), "dev")), "oncepost-dev", "demo")
	out := demo.await(isUp)
	found := mailsOf.FindStringSubmatch(out)
	if found == nil {
		t.Fatal("the demo does not say where the mails are")
	}
	inbox, id := found[1], strings.ReplaceAll(found[2], "%3A", ":")
	at := addresses(t, out)

	b := newBrowser(t)
	b.open(inbox)
	b.shows("Payment failed: 49.00 USD", "예시 주식회사에 오신 것을 환영합니다", id)
	b.picture("inbox.png")

	b.open(b.link("ol.mails a", id))
	b.shows("Payment failed: 49.00 USD", id, "Open workflow in Temporal")
	b.picture("mail.png")

	workflow := b.link("a", "Open workflow in Temporal")
	if !strings.HasPrefix(workflow, at["Temporal web UI"]+"/") {
		t.Errorf("the link leads to %s, the web UI is at %s", workflow, at["Temporal web UI"])
	}
	b.open(workflow)
	b.shows(id, "Completed", "payment_failed", "ses_message_id") // the last is in the result
	b.picture("workflow.png")
	demo.stop(syscall.SIGINT)
}

// browser is a headless Chromium with one tab.
type browser struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // it is chromedp's handle of the tab
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.WindowSize(1280, 800), chromedp.Flag("lang", "en-US"))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // its sandbox refuses root
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &browser{t, ctx}
	// The first call starts the browser, which lives as long as this context.
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 800)); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	return b
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no chromium or google-chrome on PATH: apt-get install -y chromium")
	return ""
}

// act runs one action within a bound.
func act[T any](b *browser, what string, a chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
	return v
}

func (b *browser) open(url string) {
	b.t.Helper()
	act(b, "open "+url, chromedp.Navigate(url))
}

// shows waits until the page has all of the texts, visible, in capitals or not: styles turn one into the other.
func (b *browser) shows(texts ...string) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		page := act(b, "read the page", chromedp.Evaluate[string]("document.body ? document.body.innerText.toLowerCase() : ''"))
		missing := ""
		for _, text := range texts {
			if !strings.Contains(page, strings.ToLower(text)) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the page does not show %q; it shows:\n%s", missing, page)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// link is where the first link with the text leads.
func (b *browser) link(selector, text string) string {
	b.t.Helper()
	href := act(b, "find the link "+text, chromedp.Evaluate[string](fmt.Sprintf(
		"([...document.querySelectorAll(%q)].find(a => a.innerText.includes(%q)) || {}).href || ''", selector, text)))
	if href == "" {
		b.t.Fatalf("there is no link with %q", text)
	}
	return href
}

// picture saves what the window shows, where somebody asked for it.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv(screenshotsEnv)
	if dir == "" {
		return
	}
	png := act(b, "take a picture", chromedp.CaptureScreenshot())
	if err := os.MkdirAll(dir, 0o750); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
