// Package integration holds the tests that run relay, workflows and worker inside one process against a real Temporal and
// real databases. It has no code of its own. They share one test binary, because linking the Temporal server takes long.
package integration
