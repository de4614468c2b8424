"""The server's metrics, in the Prometheus text format. Labels are names of models and routes, never texts."""

from typing import final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


@final
class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.request_seconds = Histogram(
            "foveal_request_seconds",
            "Time from the head of a request to the end of its response",
            ["model", "status"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.batch_seconds = Histogram(
            "foveal_batch_seconds",
            "Computing one batch",
            ["model"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.batch_size = Histogram(
            "foveal_batch_size",
            "Inputs of one batch, all of one size class",
            ["model", "places"],
            buckets=_SIZES,
            registry=self._registry,
        )
        self.waiting = Gauge(
            "foveal_waiting_inputs", "Inputs in the queue", registry=self._registry
        )
        self.rejected = Counter(
            "foveal_rejected_total",
            "Requests rejected before computation",
            ["reason"],
            registry=self._registry,
        )
        self.abandoned = Counter(
            "foveal_abandoned_total",
            "Requests whose client disconnected before the response",
            registry=self._registry,
        )
        self.reloads = Counter(
            "foveal_reloads_total",
            "Number of times that a model was reloaded, or rejected",
            ["model", "outcome"],
            registry=self._registry,
        )

        self.replaced = Counter(
            "foveal_replaced_total",
            "Number of times that the computing process did not respond and was replaced",
            registry=self._registry,
        )

    def text(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self._registry)
