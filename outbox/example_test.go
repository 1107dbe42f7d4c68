package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/oncepost/oncepost/outbox"
)

// The message is written in the transaction of the change that it announces: both are committed, or neither is.
func ExampleEnqueue() {
	db, done := openExample()
	defer done()

	signUp := func(ctx context.Context, db *sql.DB, id, name, email string) (string, error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return "", err
		}
		defer tx.Rollback() // after a commit it does nothing; before one its error follows another
		if _, err := tx.ExecContext(ctx, "INSERT INTO companies (id, name) VALUES (?, ?)", id, name); err != nil {
			return "", err
		}
		messageID, err := outbox.Enqueue(ctx, tx, outbox.Message{
			ID:        "welcome:" + id, // a natural key: enqueueing it twice is refused
			EventType: "welcome",
			Payload:   map[string]string{"company_id": id, "company_name": name, "email": email},
		})
		if err != nil {
			return "", err
		}
		return messageID, tx.Commit()
	}

	id, err := signUp(context.Background(), db, "c_42", "Example", "first@example.com")
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("enqueued", id)
	// Output:
	// enqueued welcome:c_42
}

// Many messages go in one statement. A duplicate undoes that statement only: the transaction can go on without it.
func ExampleEnqueueMany() {
	db, done := openExample()
	defer done()
	ctx := context.Background()

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Panic(err)
	}
	defer tx.Rollback() // after a commit it does nothing; before one its error follows another
	var messages []outbox.Message
	for _, id := range []string{"c_1", "c_2", "c_3"} {
		messages = append(messages, outbox.Message{
			ID:        "welcome:" + id,
			EventType: "welcome",
			Payload:   map[string]string{"company_id": id, "company_name": "Example", "email": id + "@example.com"},
		})
	}
	ids, err := outbox.EnqueueMany(ctx, tx, messages)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println("enqueued", ids)

	_, err = outbox.Enqueue(ctx, tx, messages[1])
	var duplicate *outbox.DuplicateError
	if errors.As(err, &duplicate) {
		fmt.Println("there already:", duplicate.MessageID)
	}
	if err := tx.Commit(); err != nil {
		log.Panic(err)
	}
	// Output:
	// enqueued [welcome:c_1 welcome:c_2 welcome:c_3]
	// there already: welcome:c_2
}

// The tables may be in another database of the same server, and still take part in the transaction.
func ExampleTable() {
	app, database, done := openTwo()
	defer done()
	ctx := context.Background()

	tx, err := app.BeginTx(ctx, nil)
	if err != nil {
		log.Panic(err)
	}
	defer tx.Rollback() // after a commit it does nothing; before one its error follows another
	if _, err := tx.ExecContext(ctx, "INSERT INTO companies (id, name) VALUES ('c_42', 'Example')"); err != nil {
		log.Panic(err)
	}
	messages := outbox.Table{Database: database}
	_, err = messages.Enqueue(ctx, tx, outbox.Message{
		EventType: "welcome",
		Payload:   map[string]string{"company_id": "c_42", "company_name": "Example", "email": "first@example.com"},
	})
	if err != nil {
		log.Panic(err)
	}
	if err := tx.Commit(); err != nil {
		log.Panic(err)
	}
	pending, err := messages.Pending(ctx, app, 100)
	fmt.Println(pending, "pending", err)
	// Output:
	// 1 pending <nil>
}
