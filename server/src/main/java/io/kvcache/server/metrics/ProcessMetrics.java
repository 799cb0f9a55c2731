package io.kvcache.server.metrics;

import com.sun.management.OperatingSystemMXBean;
import io.kvcache.tiers.metrics.Meters;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.FileDescriptorMetrics;
import io.micrometer.core.instrument.binder.system.UptimeMetrics;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;

/// Meters of the process: which version, since when, how busy, how full, and whether it stood still. Micrometer's own,
/// but for those of the processor, whose names Prometheus' rules do not allow.
///
/// Those of the collectors are read when asked for; Micrometer's meters of the collectors would listen to each
/// collection.
public final class ProcessMetrics implements MeterBinder {

    private static final double MILLIS = 1000;
    private static final double NANOS = 1e9;

    private final String version;

    public ProcessMetrics(String version) {
        this.version = version;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        new JvmMemoryMetrics().bindTo(registry);
        new JvmThreadMetrics().bindTo(registry);
        new FileDescriptorMetrics().bindTo(registry);
        new UptimeMetrics().bindTo(registry);
        Meters<String> ofVersion = new Meters<>(registry, Tags.of("version", version), () -> version);
        ofVersion.gauge("kv.version", "Always 1; the version is in its label.", _ -> 1);
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            Meters<GarbageCollectorMXBean> ofCollector =
                    new Meters<>(registry, Tags.of("gc", collector.getName()), () -> collector);
            ofCollector.count("jvm.gc.collections", "Garbage collections.", GarbageCollectorMXBean::getCollectionCount);
            ofCollector.count(
                    "jvm.gc.seconds", "Seconds spent in garbage collections.", of -> of.getCollectionTime() / MILLIS);
        }
        if (ManagementFactory.getOperatingSystemMXBean() instanceof OperatingSystemMXBean system) {
            bindProcessor(new Meters<>(registry, Tags.empty(), () -> system));
        }
    }

    private static void bindProcessor(Meters<OperatingSystemMXBean> meters) {
        meters.count(
                "process.cpu",
                "seconds",
                "Seconds of processor time used by the process.",
                system -> system.getProcessCpuTime() / NANOS);
        meters.gauge(
                "process.cpu.usage",
                "Processor load of the process, 0 to 1.",
                system -> Math.max(0, system.getProcessCpuLoad()));
        meters.gauge(
                "system.cpu.usage",
                "Processor load of the machine, 0 to 1.",
                system -> Math.max(0, system.getCpuLoad()));
        meters.gauge(
                "system.cpus", "Processors available to the process.", OperatingSystemMXBean::getAvailableProcessors);
        meters.gauge(
                "system.load.average.1m",
                "Load average of the machine over one minute.",
                OperatingSystemMXBean::getSystemLoadAverage);
    }
}
