package sesstandin

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// xmlNamespace is the namespace of every answer of the API version.
const xmlNamespace = "http://ses.amazonaws.com/doc/2010-12-01/"

// garbageBody is a 200 that no client can read: it is cut before the message ID.
const garbageBody = `<SendRawEmailResponse xmlns="` + xmlNamespace + `"><SendRawEm`

// APIError is an answer that refuses a request, in the shape of the AWS Query protocol.
type APIError struct {
	Status  int    `json:"status"`  // HTTP status; default 400 for Sender, 500 for Receiver
	Type    string `json:"type"`    // Sender (the caller's fault) or Receiver (the service's); default by Status
	Code    string `json:"code"`    // for instance Throttling
	Message string `json:"message"` // for people, though clients have to read it too
}

// Error implements error.
func (e *APIError) Error() string { return e.Code + ": " + e.Message }

func invalid(format string, args ...any) *APIError {
	return &APIError{Status: http.StatusBadRequest, Type: "Sender", Code: "InvalidParameterValue", Message: fmt.Sprintf(format, args...)}
}

func throttled(message string) *APIError {
	return &APIError{Status: http.StatusBadRequest, Type: "Sender", Code: "Throttling", Message: message}
}

type responseMetadata struct {
	RequestID string `xml:"RequestId"`
}

type errorAnswer struct {
	XMLName xml.Name `xml:"ErrorResponse"`
	Xmlns   string   `xml:"xmlns,attr"`
	Error   struct {
		Type    string
		Code    string
		Message string
	}
	RequestID string `xml:"RequestId"`
}

func (s *Server) writeError(w http.ResponseWriter, e *APIError) {
	var a errorAnswer
	a.Xmlns, a.RequestID = xmlNamespace, uuid.NewString()
	a.Error.Type, a.Error.Code, a.Error.Message = e.Type, e.Code, e.Message
	s.writeXML(w, e.Status, a.RequestID, a)
}

type sendResult struct {
	XMLName   xml.Name
	MessageID string `xml:"MessageId"`
}

type quotaResult struct {
	XMLName         xml.Name
	Max24HourSend   float64
	MaxSendRate     float64
	SentLast24Hours float64
}

type successAnswer struct {
	XMLName  xml.Name
	Xmlns    string `xml:"xmlns,attr"`
	Result   any
	Metadata responseMetadata `xml:"ResponseMetadata"`
}

// writeResult answers an action: <ActionResponse><ActionResult>…, with result as the inner element.
func (s *Server) writeResult(w http.ResponseWriter, action string, result any) {
	a := successAnswer{Xmlns: xmlNamespace, Result: result}
	a.XMLName.Local = action + "Response"
	a.Metadata.RequestID = uuid.NewString()
	s.writeXML(w, http.StatusOK, a.Metadata.RequestID, a)
}

func (s *Server) writeXML(w http.ResponseWriter, status int, requestID string, v any) {
	body, err := xml.MarshalIndent(v, "", "  ")
	if err != nil {
		// Only a type of ours that XML cannot express can get here.
		s.log.Error("answer is not XML", "error", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("X-Amzn-Requestid", requestID)
	s.write(w, status, "text/xml", body)
}

// write sends a whole body. A client that has gone is not an error of the stand-in.
func (s *Server) write(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		s.log.Debug("client left before its answer", "error", strings.TrimSpace(err.Error()))
	}
}
