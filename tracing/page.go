package tracing

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// servePage starts the metrics page, and returns what fills it: nil without a page.
func (t *Telemetry) servePage() sdkmetric.Reader {
	if t.opt.Prometheus == "" {
		return nil
	}
	registry := prometheus.NewRegistry()
	reader, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err == nil {
		err = t.listen(promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true}))
	}
	if err != nil {
		t.opt.Log.Warn("there is no metrics page; everything else works", slog.String("address", t.opt.Prometheus), slog.Any("error", err))
		return nil
	}
	return reader
}

func (t *Telemetry) listen(page http.Handler) error {
	l, err := net.Listen("tcp", t.opt.Prometheus)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", page)
	t.page = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second}
	t.pageAddr = l.Addr().String()
	go func() {
		if err := t.page.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.trouble.say("the metrics page ended", err)
		}
	}()
	return nil
}
