// Package sesstandin is a server that speaks the AWS Query protocol of classic SES
// (API version 2010-12-01) and keeps the mails it accepts instead of sending them.
//
// It answers SendEmail, SendRawEmail, GetSendQuota and three more calls that ask about the
// account (see Fault.Action) with the XML of the real service, refuses what the real service
// refuses, fails on request (see [Fault]), and shows the accepted mails on an inbox page and
// through [Server.Mails].
//
// Other processes drive it over HTTP:
//
//	GET    /_standin/mails      the mails as JSON, oldest first; ?message_id=ID selects,
//	                            ?wait=10s&at_least=2 waits until there are that many
//	DELETE /_standin/mails      forget them
//	GET    /_standin/requests   requests per action
//	GET    /_standin/faults     the faults that are not used up
//	POST   /_standin/faults     add one: {"preset":"throttle","times":3}, or the fields of Fault
//	DELETE /_standin/faults     end all
//	GET    /_standin/health     200 when it serves
//
// It is not for production: it checks no signature, knows no verified identities, and
// delivers nothing. It knows nothing of MySQL or Temporal but a link into a web UI.
package sesstandin
