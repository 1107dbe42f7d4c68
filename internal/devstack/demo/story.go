package demo

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/oncepost/oncepost/outbox"
)

// delay is how long the delayed welcome waits.
const delay = 4 * time.Second

// story does business, tells about it, and notes what must come of it.
type story struct {
	db  *sql.DB
	out io.Writer
	run string // part of every ID of this run
	all []expectation
}

func newStory(db *sql.DB, out io.Writer) *story {
	return &story{db: db, out: out, run: strings.ToLower(rand.Text()[:6])}
}

func (s *story) tell(ctx context.Context) error {
	for _, chapter := range []func(context.Context) error{
		s.signUps, s.failedPayments, s.rollback, s.delayed, s.plainSQL, s.reportedTwice,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// say tells of the message that is expected next; the table has the same numbers.
func (s *story) say(format string, args ...any) {
	fmt.Fprintf(s.out, "  %d  "+format+"\n", append([]any{len(s.all) + 1}, args...)...)
}

func (s *story) sayMore(format string, args ...any) { fmt.Fprintf(s.out, "     "+format+"\n", args...) }

func (s *story) expect(e expectation) { s.all = append(s.all, e) }

func (s *story) company(n int, name, locale string) company {
	id := fmt.Sprintf("c_%s_%d", s.run, n)
	return company{ID: id, Name: name, Email: fmt.Sprintf("first.user@%s-%d.example.com", s.run, n), Locale: locale}
}

func pass() error { return nil }

func (s *story) signUps(ctx context.Context) error {
	for i, c := range []company{s.company(1, "Example Ltd", "en"), s.company(2, "예시 주식회사", "ko")} {
		id, err := signUp(ctx, s.db, c, time.Time{}, pass)
		if err != nil {
			return fmt.Errorf("sign-up %d: %w", i+1, err)
		}
		s.say("sign-up (%s): company %s and its welcome message, one transaction: committed", c.Locale, c.ID)
		s.expect(expectation{id: id, eventType: "welcome", text: "1 mail", to: []string{c.Email}})
	}
	return nil
}

func (s *story) payment(n int, locale, amount, currency string) (id string, p payment) {
	sub := fmt.Sprintf("sub_%s_%d", s.run, n)
	p = payment{
		Company: fmt.Sprintf("c_%s_%d", s.run, n), Subscription: sub, Amount: amount, Currency: currency, Locale: locale, CardLast4: "4242",
		Reregister: "https://billing.example.com/cards/" + sub, RemindAfter: "0s", // no reminder: the demo is over by then
	}
	for _, who := range []string{"First", "Second"} {
		p.Admins = append(p.Admins, admin{
			Email: fmt.Sprintf("%s.admin@%s-%d.example.com", strings.ToLower(who), s.run, n), Name: who + " Admin",
		})
	}
	return "payment_failed:" + sub, p
}

func (p payment) recipients() (to []string) {
	for _, a := range p.Admins {
		to = append(to, a.Email)
	}
	return to
}

func (s *story) failedPayments(ctx context.Context) error {
	for i, price := range []struct{ locale, amount, currency string }{{"en", "49.00", "USD"}, {"ko", "65000", "KRW"}} {
		id, p := s.payment(i+1, price.locale, price.amount, price.currency)
		if err := inTx(ctx, s.db, func(tx *sql.Tx) error { return fail(ctx, tx, id, p) }); err != nil {
			return fmt.Errorf("failed payment %d: %w", i+1, err)
		}
		s.say("failed payment (%s): %s is past due, a message for its two admins: committed", price.locale, p.Subscription)
		s.expect(expectation{id: id, eventType: "payment_failed", text: "2 mails, one per admin", to: p.recipients()})
	}
	return nil
}

func (s *story) rollback(ctx context.Context) error {
	c := s.company(3, "Rolled Back Example", "en")
	id, err := signUp(ctx, s.db, c, time.Time{}, func() error { return errCardRefused })
	if !errors.Is(err, errCardRefused) {
		return fmt.Errorf("the sign-up to roll back did not roll back for that: %w", errors.Join(errCardRefused, err))
	}
	s.say("sign-up (en): the company and its welcome message were written, then %v: rolled back", err)
	s.expect(expectation{id: id, eventType: "welcome", text: "nothing: rolled back", nothing: true})
	return nil
}

func (s *story) delayed(ctx context.Context) error {
	now, err := databaseNow(ctx, s.db)
	if err != nil {
		return err
	}
	due := now.Add(delay)
	c := s.company(4, "Later Example", "en")
	id, err := signUp(ctx, s.db, c, due, pass)
	if err != nil {
		return fmt.Errorf("the delayed sign-up: %w", err)
	}
	s.say("sign-up (en): its welcome message has deliver_at in %s: committed", delay)
	s.expect(expectation{
		id: id, eventType: "welcome", text: "1 mail, not before " + due.Format("15:04:05.000") + " UTC", to: []string{c.Email}, due: due,
	})
	return nil
}

// plainSQL is what a service in any other language does.
func (s *story) plainSQL(ctx context.Context) error {
	c := s.company(5, "Plain SQL Example", "en")
	business := fmt.Sprintf(`INSERT INTO demo_companies (company_id, name, email, locale) `+
		`VALUES ('%s', '%s', '%s', '%s')`, c.ID, c.Name, c.Email, c.Locale)
	message := fmt.Sprintf(`INSERT INTO outbox_messages (event_type, payload) VALUES `+
		`('welcome', '{"company_id": "%s", "company_name": "%s", "email": "%s"}')`, c.ID, c.Name, c.Email)
	var id string
	err := inTx(ctx, s.db, func(tx *sql.Tx) error {
		for _, insert := range []string{business, message} {
			if _, err := tx.ExecContext(ctx, insert); err != nil {
				return err
			}
		}
		// The database has made the ID. Only this transaction sees the row yet.
		return tx.QueryRowContext(ctx, `SELECT message_id FROM outbox_messages
			WHERE message_id < '~' AND JSON_UNQUOTE(JSON_EXTRACT(payload, '$.company_id')) = ?`, c.ID).Scan(&id)
	})
	if err != nil {
		return fmt.Errorf("the plain SQL insert: %w", err)
	}
	s.say("sign-up in plain SQL: the company, and INSERT INTO outbox_messages (event_type, payload) VALUES ('welcome', '{…}'): committed")
	s.expect(expectation{id: id, eventType: "welcome", text: "1 mail", to: []string{c.Email}})
	return nil
}

// reportedTwice enqueues one ID three times: twice in one transaction, where the table itself refuses the second, and once
// when the first has started and its row is gone, where Temporal does.
func (s *story) reportedTwice(ctx context.Context) error {
	id, p := s.payment(3, "en", "12.50", "EUR")
	var refused error
	err := inTx(ctx, s.db, func(tx *sql.Tx) error {
		if err := fail(ctx, tx, id, p); err != nil {
			return err
		}
		if refused = fail(ctx, tx, id, p); !errors.Is(refused, outbox.ErrDuplicate) {
			return fmt.Errorf("the second message with one ID was not refused: %w", refused)
		}
		return nil // the transaction is still good
	})
	if err != nil {
		return fmt.Errorf("the payment reported twice: %w", err)
	}
	var duplicate *outbox.DuplicateError
	errors.As(refused, &duplicate) // it is one: ErrDuplicate matches nothing else
	s.say("failed payment (en) reported twice: committed; the second time gave a DuplicateError:")
	s.sayMore("%v", duplicate)
	if err := s.reportAgain(ctx, id, p); err != nil {
		return fmt.Errorf("the payment reported once more: %w", err)
	}
	s.sayMore("reported once more when its row was gone: committed, and Temporal refuses the second start")
	s.expect(expectation{
		id: id, eventType: "payment_failed", text: "2 mails, though enqueued 3 times", to: p.recipients(),
	})
	return nil
}

// reportAgain waits until the table takes the ID again, which is when the relay has started and deleted the first row.
func (s *story) reportAgain(ctx context.Context, id string, p payment) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return poll(ctx, func() (bool, error) {
		err := inTx(ctx, s.db, func(tx *sql.Tx) error { return fail(ctx, tx, id, p) })
		if errors.Is(err, outbox.ErrDuplicate) {
			return false, nil
		}
		return true, err
	})
}
