// Package mysqlserver runs private, real MySQL and MariaDB servers for tests and for the development stack: found on
// this machine, in a container, or fetched into a cache folder without installing anything and without being root.
//
// Its job: get the server's files (Locate, Fetch), start a server on a folder of its own on 127.0.0.1 (Start), and end
// it (Stop, Kill) in such a way that no server outlives the process that started it. It is not its job to know the
// schema of oncepost, and nothing here is meant for production data: root has no password.
package mysqlserver
