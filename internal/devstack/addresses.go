package devstack

import "github.com/go-sql-driver/mysql"

// Addresses is where everything is.
type Addresses struct {
	WebUI    string // Temporal's, the page with the workflows
	Inbox    string // the page with the mails
	Status   string // the status page
	SES      string // endpoint for AWS SDKs
	Temporal string // host:port
	// Namespace is Temporal's.
	Namespace string
	// DSN of the database, with *** for its password; Password says that it has one, Private that it belongs to the stack.
	DSN               string
	Password, Private bool
	// Host, Port, User and Database are the same for other clients.
	Network, Addr, User, Database string
}

// Addresses returns where everything is.
func (s *Stack) Addresses() (Addresses, error) {
	dsn, err := mysql.ParseDSN(s.dsn)
	if err != nil {
		return Addresses{}, err
	}
	password := dsn.Passwd != ""
	if password {
		dsn.Passwd = "***"
	}
	return Addresses{
		WebUI: s.workflows(), Inbox: s.inboxURL + "/", Status: s.pageURL, SES: s.inboxURL,
		Temporal: s.temporal.FrontendAddr(), Namespace: s.temporal.Namespace(),
		DSN: dsn.FormatDSN(), Password: password, Private: s.opts.DSN == "",
		Network: dsn.Net, Addr: dsn.Addr, User: dsn.User, Database: dsn.DBName,
	}, nil
}
