package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/oncepost/oncepost/outbox"
)

// tables are the business's own. Oncepost knows nothing of them.
var tables = [...]string{
	`CREATE TABLE IF NOT EXISTS demo_companies (
  company_id VARCHAR(64) NOT NULL PRIMARY KEY,
  name VARCHAR(255) NOT NULL,
  email VARCHAR(320) NOT NULL,
  locale VARCHAR(35) NOT NULL
) CHARACTER SET utf8mb4`,
	`CREATE TABLE IF NOT EXISTS demo_subscriptions (
  subscription_id VARCHAR(64) NOT NULL PRIMARY KEY,
  company_id VARCHAR(64) NOT NULL,
  status VARCHAR(16) NOT NULL,
  amount DECIMAL(12, 2) NOT NULL,
  currency CHAR(3) NOT NULL
) CHARACTER SET utf8mb4`,
}

func createTables(ctx context.Context, db *sql.DB) error {
	for _, table := range tables {
		if _, err := db.ExecContext(ctx, table); err != nil {
			return fmt.Errorf("make the demo's tables: %w", err)
		}
	}
	return nil
}

// company is a customer, and the payload of its welcome mail.
type company struct {
	ID     string `json:"company_id"`
	Name   string `json:"company_name"`
	Email  string `json:"email"`
	Locale string `json:"locale"`
}

// payment is a charge that failed, and the payload of its mails.
type payment struct {
	Company      string  `json:"company_id"` // beyond what the schema asks for, which is allowed
	Subscription string  `json:"subscription_id"`
	Admins       []admin `json:"admins"`
	Amount       string  `json:"amount"` // a decimal: a JSON number may be rounded on its way
	Currency     string  `json:"currency"`
	Reregister   string  `json:"reregister_url"`
	CardLast4    string  `json:"card_last4"`
	Locale       string  `json:"locale"`
	RemindAfter  string  `json:"remind_after"`
}

type admin struct {
	Email string `json:"email"`
	Name  string `json:"name"`
}

// errCardRefused is the business's own reason to roll back.
var errCardRefused = errors.New("the card was refused")

// signUp writes the company and its welcome message in one transaction: both are there afterwards, or neither.
func signUp(ctx context.Context, db *sql.DB, c company, deliverAt time.Time, check func() error) (id string, err error) {
	err = inTx(ctx, db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO demo_companies (company_id, name, email, locale) VALUES (?, ?, ?, ?)",
			c.ID, c.Name, c.Email, c.Locale)
		if err != nil {
			return err
		}
		if id, err = outbox.Enqueue(ctx, tx, outbox.Message{EventType: "welcome", Payload: c, DeliverAt: deliverAt}); err != nil {
			return err
		}
		return check()
	})
	return id, err
}

// fail marks the subscription and writes the message about it. The ID is a natural key: one month's failure is one
// message, however often the payment provider reports it.
func fail(ctx context.Context, tx *sql.Tx, id string, p payment) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO demo_subscriptions (subscription_id, company_id, status, amount, currency)
		VALUES (?, ?, 'past_due', ?, ?) ON DUPLICATE KEY UPDATE status = 'past_due'`,
		p.Subscription, p.Company, p.Amount, p.Currency)
	if err != nil {
		return err
	}
	_, err = outbox.Enqueue(ctx, tx, outbox.Message{ID: id, EventType: "payment_failed", Payload: p, Priority: 2})
	return err
}

// inTx commits when f succeeds and rolls back when it does not.
func inTx(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
