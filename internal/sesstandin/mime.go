package sesstandin

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/textproto"
	"strings"
	"unicode/utf8"
)

// maxNesting bounds multiparts inside multiparts; no honest mail comes near.
const maxNesting = 16

// readMessage fills the fields of m that come out of m.Raw.
func readMessage(m *Mail) error {
	fields, body, err := splitMessage(m.Raw)
	if err != nil {
		return err
	}
	for _, f := range fields {
		m.Headers = append(m.Headers, Header{Name: f.name, Value: decodeWords(f.value())})
	}
	m.From, m.Subject = m.Header("From"), m.Header("Subject")
	header := textproto.MIMEHeader{}
	for _, f := range fields {
		header.Add(f.name, f.value())
	}
	return readPart(m, header, bytes.NewReader(body), 0)
}

// decodeWords decodes RFC 2047. What cannot be decoded is shown as it is.
func decodeWords(s string) string {
	var d mime.WordDecoder
	decoded, err := d.DecodeHeader(s)
	if err != nil {
		decoded = s
	}
	return strings.ToValidUTF8(decoded, "\uFFFD")
}

// readPart walks the parts: the first of each text type is the mail's, the rest are attachments.
func readPart(m *Mail, header textproto.MIMEHeader, body io.Reader, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("more than %d parts inside each other", maxNesting)
	}
	mediaType, params := "text/plain", map[string]string{}
	if ct := header.Get("Content-Type"); ct != "" {
		var err error
		if mediaType, params, err = mime.ParseMediaType(ct); err != nil {
			return fmt.Errorf("Content-Type %q: %w", ct, err)
		}
	}
	if strings.HasPrefix(mediaType, "multipart/") {
		return readMultipart(m, params["boundary"], body, depth)
	}
	content, err := decodeBody(header.Get("Content-Transfer-Encoding"), body)
	if err != nil {
		return fmt.Errorf("%s part: %w", mediaType, err)
	}
	disposition, dparams, err := mime.ParseMediaType(header.Get("Content-Disposition"))
	if err != nil {
		disposition, dparams = "", nil // absent, or of a kind we need not understand
	}
	switch {
	case disposition == "attachment":
	case mediaType == "text/plain" && m.Text == "":
		m.Text = toUTF8(content, params["charset"])
		return nil
	case mediaType == "text/html" && m.HTML == "":
		m.HTML = toUTF8(content, params["charset"])
		return nil
	}
	name := dparams["filename"]
	if name == "" {
		name = params["name"]
	}
	m.Attachments = append(m.Attachments, Attachment{Name: decodeWords(name), ContentType: mediaType, Size: len(content)})
	return nil
}

func readMultipart(m *Mail, boundary string, body io.Reader, depth int) error {
	if boundary == "" {
		return errors.New("multipart without a boundary")
	}
	r := multipart.NewReader(body, boundary)
	for parts := 0; ; parts++ {
		part, err := r.NextRawPart()
		if errors.Is(err, io.EOF) && parts > 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("part %d: %w", parts+1, err)
		}
		if err := readPart(m, part.Header, part, depth+1); err != nil {
			return err
		}
	}
}

func decodeBody(encoding string, body io.Reader) ([]byte, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "7bit", "8bit", "binary":
		return io.ReadAll(body)
	case "quoted-printable":
		return io.ReadAll(quotedprintable.NewReader(body))
	case "base64":
		return io.ReadAll(base64.NewDecoder(base64.StdEncoding, body))
	}
	return nil, fmt.Errorf("Content-Transfer-Encoding %q is unknown", encoding)
}

// toUTF8 knows the three character sets of the standard library; others are shown as if they
// were UTF-8, with their invalid bytes replaced.
func toUTF8(content []byte, charset string) string {
	if strings.EqualFold(charset, "iso-8859-1") && !utf8.Valid(content) {
		runes := make([]rune, len(content))
		for i, c := range content {
			runes[i] = rune(c)
		}
		return string(runes)
	}
	return strings.ToValidUTF8(string(content), "\uFFFD")
}
