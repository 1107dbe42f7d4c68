package activities

import "context"

// Parked is what people are told of an effect that waits for them. It holds no address.
type Parked struct {
	MessageID string `json:"message_id"`
	EventType string `json:"event_type"`
	Step      string `json:"step"`
	Recipient int    `json:"recipient,omitempty"` // 1 for the first; 0 where the effect is no mail
	Class     string `json:"class"`               // in a word, what happened
	What      string `json:"what"`                // and in a sentence
}

// Reports are the activities with which workflows tell people at once. They run where the workflows do.
type Reports struct {
	// Parked tells of an effect that waits for a person. Required.
	Parked func(ctx context.Context, p Parked) error
}

// ReportParked tells of an effect that waits for a person.
func (r *Reports) ReportParked(ctx context.Context, p Parked) error { return r.Parked(ctx, p) }
