package mysqlserver

import "fmt"

// Flavour is one of the two server families that oncepost supports.
type Flavour string

// The supported flavours.
const (
	MySQL   Flavour = "mysql"
	MariaDB Flavour = "mariadb"
)

// ParseFlavour reads "mysql" or "mariadb".
func ParseFlavour(s string) (Flavour, error) {
	switch f := Flavour(s); f {
	case MySQL, MariaDB:
		return f, nil
	default:
		return "", fmt.Errorf("database flavour %q is neither %q nor %q", s, MySQL, MariaDB)
	}
}
