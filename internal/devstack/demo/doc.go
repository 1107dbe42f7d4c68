// Package demo is a small business on a running stack: companies sign up, payments fail, a transaction rolls back. It
// writes what a service of yours would write, then looks at the workflows and the mails and says whether each row came
// out as it should.
//
// It starts nothing (package devstack does), and it is re-runnable: every run has IDs of its own, and judges only its own
// rows.
package demo
