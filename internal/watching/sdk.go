package watching

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// SDKMetrics lets a Temporal client's own metrics be shown in a registry: temporal_… as Temporal's documentation lists them.
func SDKMetrics(r *prometheus.Registry) (func(*client.Options), error) {
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(r), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("metrics of the Temporal client: %w", err)
	}
	provider := metric.NewMeterProvider(metric.WithReader(exporter))
	handler := opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: provider.Meter("temporal-sdk"), InitialAttributes: attribute.NewSet(),
	})
	return func(o *client.Options) { o.MetricsHandler = handler }, nil
}
