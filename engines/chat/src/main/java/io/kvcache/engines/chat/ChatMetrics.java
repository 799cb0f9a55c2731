package io.kvcache.engines.chat;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.time.Duration;
import java.util.Locale;
import java.util.function.Supplier;

/// Counters of the server's requests.
///
/// | meter | tags | unit |
/// |---|---|---|
/// | `kv.chat.requests` | `path`, `outcome` | requests |
/// | `kv.chat.latency` | `path` | time from a request to the end of its answer |
/// | `kv.chat.first.token` | `path` | time from a request to its first token, waiting included |
/// | `kv.chat.waiting` | | requests |
///
/// **Threads.** Any.
final class ChatMetrics {

    /// From a short answer of a small model to a long one that waited in a queue.
    private static final Duration[] BOUNDS = {
        Duration.ofMillis(25),
        Duration.ofMillis(100),
        Duration.ofMillis(250),
        Duration.ofSeconds(1),
        Duration.ofMillis(2500),
        Duration.ofSeconds(10),
        Duration.ofSeconds(30),
        Duration.ofMinutes(2)
    };

    private final MeterRegistry registry;

    /// How a request ended.
    enum Outcome {
        OK,
        /// It asked for what this server does not do; a status of 400 or 404.
        REFUSED,
        /// Too many waited; a status of 429.
        BUSY,
        /// Something broke; a status of 500, or a stream that was cut.
        FAILED,
        /// Its client left.
        GONE
    }

    /// @param waiting requests that wait for the model
    ChatMetrics(MeterRegistry registry, Supplier<Number> waiting) {
        this.registry = registry;
        Gauge.builder("kv.chat.waiting", waiting)
                .description("Requests that wait for the model.")
                .register(registry);
    }

    void recordOutcome(String path, Outcome outcome) {
        Counter.builder("kv.chat.requests")
                .description("Requests for an answer, by what became of them.")
                .tag("path", path)
                .tag("outcome", outcome.name().toLowerCase(Locale.ROOT))
                .register(registry)
                .increment();
    }

    void recordFirstToken(String path, long nanos) {
        timer("kv.chat.first.token", path, "Time from a request to its first token, waiting included.")
                .record(Duration.ofNanos(nanos));
    }

    void recordLatency(String path, long nanos) {
        timer("kv.chat.latency", path, "Time from a request to the end of its answer, waiting included.")
                .record(Duration.ofNanos(nanos));
    }

    private Timer timer(String name, String path, String description) {
        return Timer.builder(name)
                .description(description)
                .tag("path", path)
                .serviceLevelObjectives(BOUNDS)
                .register(registry);
    }
}
