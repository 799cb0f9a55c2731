package io.kvcache.server.metrics;

import io.kvcache.server.lease.Leases;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;

/// Binds what is leased to processes that read in place.
///
/// | meter | unit |
/// |---|---|
/// | `kv.leases` | leases there are now |
/// | `kv.leases.held` | bytes leased now |
/// | `kv.leases.expired` | leases that were not released in time |
public final class LeaseMetrics implements MeterBinder {

    private final Leases leases;

    public LeaseMetrics(Leases leases) {
        this.leases = leases;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        Gauge.builder("kv.leases", leases, Leases::count).register(registry);
        Gauge.builder("kv.leases.held", leases, Leases::heldBytes)
                .baseUnit("bytes")
                .register(registry);
        FunctionCounter.builder("kv.leases.expired", leases, Leases::expiredCount)
                .register(registry);
    }
}
