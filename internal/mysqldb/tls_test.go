package mysqldb

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncepost/oncepost/internal/mysqlserver"
	"github.com/oncepost/oncepost/internal/testdb"
)

// authority is a certificate authority of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	a := authority{file: filepath.Join(t.TempDir(), name+".pem")}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.key = a.sign(t, template, a.file)
	return a
}

// sign makes a key and its certificate, signed by the authority, or by itself where there is none yet.
func (a authority) sign(t *testing.T, template *x509.Certificate, file string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, file, "CERTIFICATE", der)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// server makes the files of a server on 127.0.0.1.
func (a authority) server(t *testing.T) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	_, private := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, cert)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, key, "PRIVATE KEY", der)
	return cert, key
}

func writePEM(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// With a CA file the connection is encrypted and the server's certificate checked, name and issuer.
func TestTLSIsVerified(t *testing.T) {
	trusted, other := newAuthority(t, "trusted"), newAuthority(t, "other")
	cert, key := trusted.server(t)
	for _, f := range testdb.Flavours() {
		t.Run(string(f), func(t *testing.T) {
			server := testdb.OwnServer(t, f, "--ssl-ca="+trusted.file, "--ssl-cert="+cert, "--ssl-key="+key)
			s := testdb.NewSchemaOn(t, server)
			db := openDB(t, Config{DSN: s.DSN, TLSCA: trusted.file})
			var name, used string
			if err := db.QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE 'Ssl_cipher'").Scan(&name, &used); err != nil || used == "" {
				t.Errorf("cipher %q, %v", used, err)
			}
			err := openDB(t, Config{DSN: s.DSN, TLSCA: other.file}).PingContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), "certificate") {
				t.Errorf("another authority's server: %v", err)
			}
			// The certificate is for 127.0.0.1, and the DSN may not talk its way past the check.
			byName := strings.Replace(s.DSN, "127.0.0.1", "localhost", 1)
			err = openDB(t, Config{DSN: byName + "?tls=skip-verify", TLSCA: trusted.file}).PingContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), "certificate") {
				t.Errorf("a certificate for another name: %v", err)
			}
		})
	}
}

// A server without TLS is refused, and not spoken to in the clear.
func TestTLSDoesNotFallBack(t *testing.T) {
	a := newAuthority(t, "trusted")
	for _, f := range testdb.Flavours() {
		t.Run(string(f), func(t *testing.T) {
			flag := map[string]string{"mysql": "--tls-version=", "mariadb": "--skip-ssl"}[string(f)]
			s := testdb.NewSchemaOn(t, testdb.OwnServer(t, f, flag))
			if err := openDB(t, Config{DSN: s.DSN + "?tls=preferred", TLSCA: a.file}).PingContext(t.Context()); err == nil {
				t.Error("connected without TLS")
			}
			if err := openDB(t, Config{DSN: s.DSN}).PingContext(t.Context()); err != nil {
				t.Errorf("without a CA file: %v", err)
			}
		})
	}
}

// The certificate that MySQL makes for itself names no host, so that it proves nothing about who answers: it is refused even
// with its own authority.
func TestTLSWithTheCertificateThatMySQLMakes(t *testing.T) {
	for _, f := range testdb.Flavours() {
		if f != mysqlserver.MySQL {
			continue // MariaDB 10.11 makes none
		}
		s := testdb.NewSchemaOn(t, testdb.OwnServer(t, f))
		authority := filepath.Join(s.Server.Options().Dir, "data", "ca.pem")
		if _, err := os.Stat(authority); err != nil {
			t.Fatal(err)
		}
		err := openDB(t, Config{DSN: s.DSN, TLSCA: authority}).PingContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), "SAN") {
			t.Errorf("error %v, want one about the certificate's names", err)
		}
	}
}
