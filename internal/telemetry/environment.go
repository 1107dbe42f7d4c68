package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// settings are what the environment says, as far as the exporters do not read it themselves.
type settings struct {
	scheme, host, path string
	protocol           string
	standard           bool // no endpoint is given: the one of OpenTelemetry's specification
}

const (
	overHTTP = "http/protobuf"
	overGRPC = "grpc"
)

// read returns nil where traces are off. It looks at all that the exporters would be silent about, or quote in a log although it
// may be a credential.
func read(getenv func(string) string) (*settings, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil //nolint:nilnil // off, which is no error
	}
	exporter := getenv("OTEL_TRACES_EXPORTER")
	name, endpoint := either(getenv, "ENDPOINT")
	if exporter == "none" || exporter == "" && endpoint == "" {
		return nil, nil //nolint:nilnil // off, which is no error
	}
	if exporter != "" && exporter != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q, and oncepost exports by otlp alone: set otlp or none", exporter)
	}
	s := &settings{protocol: overHTTP, standard: endpoint == ""}
	if name, p := either(getenv, "PROTOCOL"); p == overGRPC || p == overHTTP {
		s.protocol = p
	} else if p != "" {
		return nil, fmt.Errorf("%s is %q, and oncepost has %s and %s", name, p, overHTTP, overGRPC)
	}
	if name, headers := either(getenv, "HEADERS"); headers != "" {
		if err := checkHeaders(headers); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if s.standard {
		s.scheme, s.host, s.path = "http", "localhost:4318", "/v1/traces"
		if s.protocol == overGRPC {
			s.host, s.path = "localhost:4317", ""
		}
		return s, nil
	}
	if err := s.parse(endpoint); err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	return s, nil
}

// either reads a variable of the exporter: that for traces before that for all signals.
func either(getenv func(string) string, suffix string) (name, value string) {
	for _, name = range []string{"OTEL_EXPORTER_OTLP_TRACES_" + suffix, "OTEL_EXPORTER_OTLP_" + suffix} {
		if value = strings.TrimSpace(getenv(name)); value != "" {
			return name, value
		}
	}
	return name, ""
}

func (s *settings) parse(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("must be a URL like http://collector.example:4318") // not quoted: it may hold a credential
	}
	if u.User != nil || u.RawQuery != "" {
		return errors.New("has a user, a password or a query, which are not sent: give a credential in OTEL_EXPORTER_OTLP_HEADERS")
	}
	s.scheme, s.host, s.path = u.Scheme, u.Host, u.Path
	return nil
}

// checkHeaders refuses what the exporter would leave out, and log with its value.
func checkHeaders(headers string) error {
	for i, h := range strings.Split(headers, ",") {
		name, value, found := strings.Cut(h, "=")
		if _, err := url.PathUnescape(value); err != nil || !found || !isToken(strings.TrimSpace(name)) {
			return fmt.Errorf("entry %d must be name=value, with %% and commas in the value written as %%25 and %%2C", i+1)
		}
	}
	return nil
}

// isToken reports whether s can be the name of a header (RFC 9110).
func isToken(s string) bool {
	const marks = "!#$%&'*+-.^_`|~"
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		digit := '0' <= r && r <= '9'
		return !letter && !digit && !strings.ContainsRune(marks, r)
	})
}

// exporter returns the exporter. All else that its variables say (headers, certificates, time-out, compression) it reads itself.
func (s *settings) exporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if s.protocol == overGRPC {
		var options []otlptracegrpc.Option
		if s.standard {
			options = append(options, otlptracegrpc.WithEndpointURL(s.scheme+"://"+s.host))
		}
		return otlptracegrpc.New(ctx, options...)
	}
	var options []otlptracehttp.Option
	if s.standard {
		options = append(options, otlptracehttp.WithEndpointURL(s.scheme+"://"+s.host+s.path))
	}
	return otlptracehttp.New(ctx, options...)
}

// shown is where traces go, without the path: some vendors have the credential there.
func (s *settings) shown() string { return s.scheme + "://" + s.host }

// without is an error's text without the endpoint's path, in whatever form it stands there.
func without(err error, path string) string {
	text := err.Error()
	if len(path) > 1 {
		text = strings.ReplaceAll(text, strings.TrimSuffix(path, "/"), "/…")
		text = strings.ReplaceAll(text, strings.TrimSuffix((&url.URL{Path: path}).EscapedPath(), "/"), "/…")
	}
	return text
}
