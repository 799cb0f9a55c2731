package io.kvcache.server.metrics;

import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.time.Instant;
import java.util.Map;
import java.util.function.Supplier;

/// Binds when certificates end.
///
/// | meter | tags | unit |
/// |---|---|---|
/// | `kv.tls.certificate.expiry` | `setting`, as in `listeners.0.tls` | seconds since 1970 |
public final class CertificateMetrics implements MeterBinder {

    private final Map<String, Supplier<Instant>> expiries;

    /// @param ends by the setting that names the certificate
    public CertificateMetrics(Map<String, Supplier<Instant>> ends) {
        this.expiries = Map.copyOf(ends);
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        expiries.forEach((setting, end) -> Gauge.builder(
                        "kv.tls.certificate.expiry", end, each -> each.get().getEpochSecond())
                .tags("setting", setting)
                .baseUnit("seconds")
                .strongReference(true)
                .register(registry));
    }
}
