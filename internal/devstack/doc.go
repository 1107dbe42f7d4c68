// Package devstack runs the whole of oncepost on one machine: a private database, Temporal with its web UI, the SES
// stand-in with its inbox, the tables, a relay and a worker.
//
// Its job: start the parts in order, so that a row committed after Start becomes a mail in the inbox; keep data and
// addresses in one folder over restarts, kills included; say which part died; and stop all of it in order with nothing
// left behind. It is not its job to be production: nothing here has a password, and everything listens on 127.0.0.1.
//
// The parts are packages of their own (mysqlserver, devtemporal, sesstandin, migrate, starter, worker); this one only
// joins them. Whatever imports it links the Temporal server.
package devstack
