package sesstandin_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/ses/types"

	"github.com/oncepost/oncepost/internal/sesstandin"
)

// What is asked about the account is answered as the real SDK reads it, also where the answer is no; a fault of sends changes
// nothing of it.
func TestAccount(t *testing.T) {
	s := start(t, sesstandin.Config{})
	s.inject(sesstandin.Fault{DropBefore: true})
	ask := func() (enabled bool, status types.VerificationStatus, identities int) {
		t.Helper()
		e, err := s.ses.GetAccountSendingEnabled(t.Context(), &ses.GetAccountSendingEnabledInput{})
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.ses.GetIdentityVerificationAttributes(t.Context(), &ses.GetIdentityVerificationAttributesInput{Identities: []string{"a@example.com", "example.com"}})
		if err != nil {
			t.Fatal(err)
		}
		return e.Enabled, v.VerificationAttributes["example.com"].VerificationStatus, len(v.VerificationAttributes)
	}
	if enabled, status, n := ask(); !enabled || status != types.VerificationStatusSuccess || n != 2 {
		t.Errorf("enabled=%v status=%s identities=%d", enabled, status, n)
	}
	set, err := s.ses.DescribeConfigurationSet(t.Context(), &ses.DescribeConfigurationSetInput{ConfigurationSetName: aws.String("events")})
	if err != nil || aws.ToString(set.ConfigurationSet.Name) != "events" {
		t.Errorf("%+v, %v", set, err)
	}
	for _, action := range []string{"GetAccountSendingEnabled", "GetIdentityVerificationAttributes"} {
		s.inject(sesstandin.Fault{Action: action, Negative: true})
	}
	if enabled, status, _ := ask(); enabled || status != types.VerificationStatusPending {
		t.Errorf("enabled=%v status=%s", enabled, status)
	}
}
