package starter

import (
	"os"
	"testing"

	"github.com/oncepost/oncepost/internal/testdb"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }
