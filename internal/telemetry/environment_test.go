package telemetry

import (
	"strings"
	"testing"
)

func TestEnvironment(t *testing.T) {
	const general, ofTraces = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for _, c := range []struct {
		name string
		env  map[string]string
		want string // where to; "" is off
		err  string
	}{
		{name: "nothing"},
		{name: "other variables alone", env: map[string]string{"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "always_on"}},
		{name: "endpoint", env: map[string]string{general: "http://c:4318"}, want: "http://c:4318 http/protobuf"},
		{name: "of traces first", env: map[string]string{general: "http://c:4318", ofTraces: "https://d/x/secret"}, want: "https://d http/protobuf"},
		{name: "disabled", env: map[string]string{general: "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}},
		{name: "not disabled", env: map[string]string{general: "http://c:4318", "OTEL_SDK_DISABLED": "1"}, want: "http://c:4318 http/protobuf"},
		{name: "none", env: map[string]string{general: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}},
		{name: "otlp", env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, want: "http://localhost:4318 http/protobuf"},
		{
			name: "otlp over grpc", want: "http://localhost:4317 grpc",
			env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
		},
		{name: "another exporter", env: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, err: "OTEL_TRACES_EXPORTER"},
		{
			name: "another protocol", err: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
			env: map[string]string{general: "http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"},
		},
		{name: "no URL", env: map[string]string{general: "secret:4318"}, err: general + " must be a URL"},
		{name: "half a URL", env: map[string]string{ofTraces: "http://%zz/secret"}, err: ofTraces + " must be a URL"},
		{name: "password", env: map[string]string{general: "http://user:secret@c:4318"}, err: general + " has a user"},
		{name: "query", env: map[string]string{general: "http://c:4318?key=secret"}, err: general + " has a user"},
		{name: "headers", env: map[string]string{general: "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": "a=b%2C, x-k = v=="}, want: "http://c:4318 http/protobuf"},
		{name: "header without a name", env: map[string]string{general: "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": "a=b,secret"}, err: "OTEL_EXPORTER_OTLP_HEADERS: entry 2"},
		{name: "header with a bad value", env: map[string]string{general: "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": "a=secret%"}, err: "OTEL_EXPORTER_OTLP_HEADERS: entry 1"},
		{name: "header with a bad name", env: map[string]string{general: "http://c:4318", "OTEL_EXPORTER_OTLP_HEADERS": "a b=secret"}, err: "OTEL_EXPORTER_OTLP_HEADERS: entry 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := read(func(name string) string { return c.env[name] })
			got := ""
			if s != nil {
				got = s.shown() + " " + s.protocol
			}
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != c.want || !strings.Contains(text, c.err) || c.err == "" && err != nil || strings.Contains(text+got, "secret") {
				t.Errorf("%q, %v; want %q, %q", got, err, c.want, c.err)
			}
		})
	}
}
