package io.kvcache.server.metrics;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.FileDescriptorMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.core.instrument.binder.system.UptimeMetrics;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;

/// What somebody who is called at night asks of any process: which version, since when, how busy, how full, and whether
/// it stood still. Micrometer's own meters, and
///
/// | meter | tags | what |
/// |---|---|---|
/// | `kv.version` | `version` | 1 |
/// | `jvm.gc.collections` | `gc` | collections of the heap |
/// | `jvm.gc.seconds` | `gc` | seconds that they took |
///
/// These two are read when asked for; Micrometer's meters of the collectors would listen to each collection.
public final class ProcessMetrics implements MeterBinder {

    private static final double MILLIS = 1000;

    private final String version;

    public ProcessMetrics(String version) {
        this.version = version;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        new JvmMemoryMetrics().bindTo(registry);
        new JvmThreadMetrics().bindTo(registry);
        new FileDescriptorMetrics().bindTo(registry);
        new ProcessorMetrics().bindTo(registry);
        new UptimeMetrics().bindTo(registry);
        Gauge.builder("kv.version", () -> 1).tag("version", version).register(registry);
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            FunctionCounter.builder("jvm.gc.collections", collector, GarbageCollectorMXBean::getCollectionCount)
                    .description("Collections of the heap.")
                    .tag("gc", collector.getName())
                    .register(registry);
            FunctionCounter.builder("jvm.gc.seconds", collector, each -> each.getCollectionTime() / MILLIS)
                    .description("Seconds that collections of the heap took.")
                    .tag("gc", collector.getName())
                    .register(registry);
        }
    }
}
