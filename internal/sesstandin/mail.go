package sesstandin

import (
	"strings"
	"time"
)

// Names of the message tags that the inbox understands.
const (
	tagMessageID = "message_id"
	tagEventType = "event_type"
)

// Mail is one accepted mail. Its slices and maps are shared between all readers: do not
// change them.
type Mail struct {
	ID               string            `json:"id"`                          // the ID that SES gave it, unique per mail
	MessageID        string            `json:"message_id,omitempty"`        // decoded from the tag message_id
	EventType        string            `json:"event_type,omitempty"`        // decoded from the tag event_type
	Action           string            `json:"action"`                      // SendEmail or SendRawEmail
	Source           string            `json:"source"`                      // the envelope sender, a bare address
	From             string            `json:"from"`                        // the From header, decoded
	To               []string          `json:"to"`                          // every recipient, To, Cc and Bcc alike, as bare addresses
	Subject          string            `json:"subject"`                     // decoded
	Text             string            `json:"text,omitempty"`              // the first text/plain part, as UTF-8
	HTML             string            `json:"html,omitempty"`              // the first text/html part, as UTF-8
	Headers          []Header          `json:"headers"`                     // in their order, decoded
	Attachments      []Attachment      `json:"attachments,omitempty"`       // every other part
	Tags             map[string]string `json:"tags,omitempty"`              // as they were sent, undecoded
	ConfigurationSet string            `json:"configuration_set,omitempty"` // as it was sent
	ReceivedAt       time.Time         `json:"received_at"`                 // by the stand-in's clock
	Raw              []byte            `json:"raw"`                         // with SES's Message-ID and Date; base64 in JSON
}

// Header is one header field of a mail.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Attachment describes a part of a mail that is not shown as text.
type Attachment struct {
	Name        string `json:"name"`
	ContentType string `json:"content_type"`
	Size        int    `json:"size"` // bytes, decoded
}

// Header returns the first header of that name (in any case), decoded, or "".
func (m Mail) Header(name string) string {
	for _, h := range m.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

// size is what a mail counts against Config.MaxBytes.
func (m Mail) size() int64 {
	return int64(len(m.Raw) + len(m.Text) + len(m.HTML))
}
