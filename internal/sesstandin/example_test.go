package sesstandin_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

// A test that wants to see what happens when the answer of SES is lost: the mail is there, though
// the sender saw an error.
func Example() {
	server, err := sesstandin.New(sesstandin.Config{})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	http := httptest.NewServer(server.Handler())
	defer http.Close()

	lost, err := sesstandin.Preset("lost-answer")
	if err != nil {
		panic(err)
	}
	lost.Times = 1
	if _, err := server.Inject(lost); err != nil {
		panic(err)
	}

	// What an AWS SDK with AWS_ENDPOINT_URL_SES posts.
	client := http.Client()
	defer client.CloseIdleConnections()
	_, err = client.PostForm(http.URL, url.Values{
		"Action":                           {"SendEmail"},
		"Source":                           {"shop@example.com"},
		"Destination.ToAddresses.member.1": {"you@example.com"},
		"Message.Subject.Data":             {"Hello"},
		"Message.Body.Text.Data":           {"It works."},
		"Tags.member.1.Name":               {"message_id"},
		"Tags.member.1.Value":              {"order-7"},
	})
	fmt.Println("the sender saw an error:", err != nil)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	mails, err := server.Wait(ctx, func(mails []sesstandin.Mail) bool { return len(mails) == 1 })
	if err != nil {
		panic(err)
	}
	fmt.Println(mails[0].MessageID, mails[0].To, mails[0].Subject)
	// Output:
	// the sender saw an error: true
	// order-7 [you@example.com] Hello
}
