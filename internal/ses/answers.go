package ses

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/oncepost/oncepost/activities"
)

// line is one line of the table of outcomes. The first that fits an answer decides.
type line struct {
	codes  []string // SES's error codes; none: any
	text   string   // what SES's message contains; "": anything. Codes alone do not tell a paused account from a bad mail
	status int      // the HTTP status, or 0 for any
	answer activities.Answer
}

// throttlePause is how long a send waits after SES said that the rate is exceeded. The rate is a matter of seconds.
const throttlePause = 5 * time.Second

func stop(class string, scope activities.Scope, text string) activities.Answer {
	return activities.Answer{Verdict: activities.VerdictStop, Class: class, Scope: scope, Text: text}
}

// table is every answer of SES. Codes are compared without a trailing "Exception": the API's names for one thing vary.
// Sources: the API reference of classic SES (common errors, SendRawEmail) and its developer guide on enforcement and quotas.
var table = []line{
	{codes: []string{"AccountSendingPaused"}, answer: stop("account_paused", activities.ScopeAccount, "SES has paused sending for this account")},
	{text: "sending paused", answer: stop("account_paused", activities.ScopeAccount, "SES has paused sending for this account")},
	{codes: []string{"ConfigurationSetSendingPaused"}, answer: stop("configuration_set_paused", activities.ScopeAccount, "SES has paused sending for the configuration set")},
	{codes: []string{"ConfigurationSetDoesNotExist"}, answer: stop("no_configuration_set", activities.ScopeAccount, "SES knows no such configuration set")},
	{codes: []string{"MailFromDomainNotVerified"}, answer: stop("sender_not_verified", activities.ScopeSender, "SES has not verified the MAIL FROM domain of the sender")},
	{text: "not verified", answer: stop("sender_not_verified", activities.ScopeSender, "SES has not verified the sender, or the account is in the sandbox and the recipient is not verified")},
	{text: "daily message quota", answer: stop(activities.ClassDailyQuota, activities.ScopeQuota, "the account's quota of the day is used up")},
	{codes: []string{"Throttling", "TooManyRequests", "RequestLimitExceeded", "LimitExceeded"}, answer: later("throttled", throttlePause, "SES says that the sending rate is exceeded")},
	{
		codes: []string{
			"AccessDenied", "NotAuthorized", "UnauthorizedOperation", "InvalidClientTokenId", "UnrecognizedClient", "InvalidAccessKeyId",
			"SignatureDoesNotMatch", "InvalidSignature", "IncompleteSignature", "MissingAuthenticationToken", "MissingAuthenticationTokenException",
			"ExpiredToken", "RequestExpired", "OptInRequired", "AuthFailure",
		},
		answer: stop("credentials", activities.ScopeCredentials, "SES refuses the credentials, or their rights"),
	},
	{codes: []string{"MessageRejected"}, answer: never("rejected", "SES refuses this mail")},
	{codes: []string{"InvalidParameterValue"}, answer: never("invalid", "SES finds a value of this mail invalid")},
	{codes: []string{"ServiceUnavailable"}, answer: later("unavailable", 0, "SES is unavailable")},
	{status: http.StatusServiceUnavailable, answer: later("unavailable", 0, "SES is unavailable")},
	{status: http.StatusTooManyRequests, answer: later("throttled", throttlePause, "SES says that the sending rate is exceeded")},
	{status: http.StatusForbidden, answer: stop("credentials", activities.ScopeCredentials, "SES refuses the credentials, or their rights")},
}

func later(class string, wait time.Duration, text string) activities.Answer {
	return activities.Answer{Verdict: activities.VerdictLater, Class: class, Wait: wait, Text: text}
}

func never(class, text string) activities.Answer {
	return activities.Answer{Verdict: activities.VerdictNever, Class: class, Text: text}
}

func unknown(class, text string) activities.Answer {
	return activities.Answer{Verdict: activities.VerdictUnknown, Class: class, Text: text}
}

// judge finds the answer for a failed request. left says that some of it may have reached SES. Texts hold nothing of what
// SES says: it quotes addresses.
func judge(err error, left bool) activities.Answer {
	status := 0
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	code, text := "", ""
	var api smithy.APIError
	if errors.As(err, &api) {
		code, text = strings.TrimSuffix(api.ErrorCode(), "Exception"), strings.ToLower(api.ErrorMessage())
	}
	for _, l := range table {
		if l.fits(code, text, status) {
			return l.answer
		}
	}
	switch {
	case !left:
		return notLeft(err)
	case status >= 500:
		return unknown("server_error", "SES failed while it worked on the mail, which may have been sent")
	case status >= 400: // the request was read and refused; why, no line above knows
		return later("refused", 0, "SES refuses the request with a code that oncepost does not know")
	case status != 0:
		return unknown("unreadable_answer", "SES's answer cannot be read; the mail may have been sent")
	case errors.Is(err, context.DeadlineExceeded):
		return unknown("no_answer", "SES did not answer in time; the mail may have been sent")
	}
	return unknown("cut_off", "the connection broke before SES's answer; the mail may have been sent")
}

// notLeft is for requests of which nothing has left this process.
func notLeft(err error) activities.Answer {
	// The SDK has no type of its own for this (its endpoint resolver and its signer wrap it in text; TestNoCredentials).
	if text := err.Error(); strings.Contains(text, "get credentials") || strings.Contains(text, "failed to sign") {
		return stop("credentials", activities.ScopeCredentials, "there are no AWS credentials to be had")
	}
	return later("not_connected", 0, "SES cannot be reached; nothing was sent")
}

func (l line) fits(code, text string, status int) bool {
	known := len(l.codes) == 0
	for _, c := range l.codes {
		known = known || strings.EqualFold(c, code)
	}
	return known && strings.Contains(text, l.text) && (l.status == 0 || l.status == status)
}

// traced returns a context that notes when any of a request may have left.
func traced(ctx context.Context) (context.Context, *atomic.Bool) {
	var left atomic.Bool
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { left.Store(true) },
		WroteRequest: func(httptrace.WroteRequestInfo) { left.Store(true) },
	}), &left
}
