// Package testdb gives tests fresh databases on real, private MySQL and MariaDB servers.
//
// Its job: start one server per flavour and test binary when the first test asks for it, make and drop an empty
// database per test, make accounts with few rights, and end all of it. It is not its job to know oncepost's tables:
// who wants them applies the migrations.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }
//
// ONCEPOST_TEST_DB chooses the flavours: mysql, mariadb, or both (the default). Servers that are not on this machine
// yet are fetched; a test never skips.
package testdb
