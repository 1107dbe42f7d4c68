package locks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxName is the longest lock name that MySQL takes. It folds case, MariaDB does not.
const maxName = 64

// Name makes the name of a lock: a readable prefix and a hash of the database and the key, lower-case ASCII, at most 64
// characters. Named locks belong to the whole server; the database in the name keeps two applications apart.
func Name(database, key string) string {
	sum := sha256.Sum256([]byte(database + "\x00" + key))
	readable := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, key)
	const prefix, hash = "oncepost:", 24 // 96 bits of hash
	if room := maxName - len(prefix) - 1 - hash; len(readable) > room {
		readable = readable[:room]
	}
	return prefix + readable + ":" + hex.EncodeToString(sum[:])[:hash]
}

// Key makes the key of a lock for a natural key that a UNIQUE index cannot guard, such as an address among accounts that are only
// marked as deleted: locks.Key("users.email", email). The values are hashed and cannot be read from the lock's name. They are taken
// byte by byte: what the database holds for equal (letter case, trailing spaces) must be made equal before.
func Key(what string, values ...string) string {
	sum := sha256.New()
	for _, v := range append([]string{what}, values...) {
		fmt.Fprintf(sum, "%d:", len(v))
		sum.Write([]byte(v)) // never fails (documented)
	}
	return what + "/" + hex.EncodeToString(sum.Sum(nil))[:32]
}
