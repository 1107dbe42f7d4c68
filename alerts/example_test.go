package alerts_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/oncepost/oncepost/alerts"
	"github.com/oncepost/oncepost/internal/sesstandin"
)

// The card was charged, and the database cannot be told. That is no message for the outbox, which is in that database.
func Example() {
	standin, endpoint, stop := startStandIn()
	defer stop()
	// In production these stand in the environment, without an endpoint.
	for name, value := range map[string]string{
		"ONCEPOST_ALERT_FROM": "Shop <alerts@example.com>", "ONCEPOST_ALERT_TO": "first.admin@example.com", "ONCEPOST_ALERT_ENDPOINT": endpoint,
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
		defer os.Unsetenv(name)
	}
	db := databaseThatIsDown()
	defer db.Close()

	err := takePayment(context.Background(), db, "sub_9")
	fmt.Println("the caller's error:", strings.SplitAfter(err.Error(), "sub_9")[0])

	mail := standin.Mails()[0]
	fmt.Println(mail.To, mail.Subject)
	fmt.Println("the mail says why:", strings.Contains(mail.Text, "connection refused"))
	fmt.Println("and which:", strings.Contains(mail.Text, "subscription: sub_9") && strings.Contains(mail.Text, "charge: ch_1"))
	// Output:
	// the caller's error: payment of sub_9
	// [first.admin@example.com] [alert] payment taken but the database update failed
	// the mail says why: true
	// and which: true
}

func takePayment(ctx context.Context, db *sql.DB, subscription string) error {
	charge := chargeCard()
	_, err := db.ExecContext(ctx, "UPDATE subscriptions SET paid_by = ? WHERE id = ?", charge, subscription)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("payment of %s was taken and is not recorded: %w", subscription, err)
	return errors.Join(err, alerts.Send(ctx, alerts.Alert{
		Title:  "payment taken but the database update failed",
		Detail: err.Error(),
		Fields: map[string]string{"subscription": subscription, "charge": charge},
		Key:    "payment not recorded: " + subscription, // each customer's is an alert of its own
	}))
}

func chargeCard() string { return "ch_1" }

// databaseThatIsDown is at a port that nobody listens at.
func databaseThatIsDown() *sql.DB {
	server := httptest.NewServer(nil)
	addr := server.Listener.Addr().String()
	server.Close()
	connector, err := mysql.NewConnector(&mysql.Config{User: "app", Net: "tcp", Addr: addr, DBName: "app", AllowNativePasswords: true})
	if err != nil {
		panic(err)
	}
	return sql.OpenDB(connector)
}

func startStandIn() (standin *sesstandin.Server, endpoint string, stop func()) {
	standin, err := sesstandin.New(sesstandin.Config{})
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(standin.Handler())
	// The error log is the alert's first way; here it is not to be read.
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	return standin, server.URL, func() {
		slog.SetDefault(before)
		server.Close()
		if err := standin.Close(); err != nil {
			panic(err)
		}
	}
}
