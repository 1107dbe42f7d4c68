// Package devtemporal runs a real Temporal server with its web UI inside this process, on SQLite: a file for the
// development stack, memory for tests.
//
// Its job: start the server so that a caller can use the namespace and its search attributes at once, keep addresses
// and data over a restart on the same folder, and stop it in order. It is not its job to run workers, and it is no
// production server: one process, one disk, no authentication, 127.0.0.1 only.
//
// Whatever imports this package links the whole Temporal server (about 150 MB); the production binary must not.
package devtemporal
