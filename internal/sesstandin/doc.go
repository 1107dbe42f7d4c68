// Package sesstandin is a server that speaks the AWS Query protocol of classic SES
// (API version 2010-12-01) and keeps the mails it accepts instead of sending them.
//
// It answers SendEmail, SendRawEmail and GetSendQuota with the XML of the real service,
// refuses what the real service refuses, fails on request (see [Fault]), and shows the
// accepted mails on an inbox page and through [Server.Mails].
//
// It is not for production: it checks no signature, knows no verified identities, and
// delivers nothing. It knows nothing of MySQL or Temporal but a link into a web UI.
package sesstandin
