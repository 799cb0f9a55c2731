package io.kvcache.server.metrics;

import com.sun.management.OperatingSystemMXBean;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.FileDescriptorMetrics;
import io.micrometer.core.instrument.binder.system.UptimeMetrics;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.function.Supplier;

/// What somebody who is called at night asks of any process: which version, since when, how busy, how full, and whether
/// it stood still. Micrometer's own meters, but for those of the processor, whose names Prometheus' rules do not allow;
/// and
///
/// | meter | tags | what |
/// |---|---|---|
/// | `process.cpu` | | seconds of processor time |
/// | `process.cpu.usage`, `system.cpu.usage` | | share of the processors that is in use, 0 to 1 |
/// | `system.cpus` | | processors that the process may use |
/// | `system.load.average.1m` | | load of the machine |
/// | `kv.version` | `version` | 1 |
/// | `jvm.gc.collections` | `gc` | collections of the heap |
/// | `jvm.gc.seconds` | `gc` | seconds that they took |
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
        bindProcessor(registry);
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

    private static void bindProcessor(MeterRegistry registry) {
        if (ManagementFactory.getOperatingSystemMXBean() instanceof OperatingSystemMXBean system) {
            FunctionCounter.builder("process.cpu", system, each -> each.getProcessCpuTime() / NANOS)
                    .description("Seconds of processor time that the process took.")
                    .baseUnit("seconds")
                    .register(registry);
            gauge(
                    registry,
                    "process.cpu.usage",
                    "Share of the processors that the process uses, 0 to 1.",
                    () -> Math.max(0, system.getProcessCpuLoad()));
            gauge(
                    registry,
                    "system.cpu.usage",
                    "Share of the processors that is in use, 0 to 1.",
                    () -> Math.max(0, system.getCpuLoad()));
            gauge(registry, "system.cpus", "Processors that the process may use.", system::getAvailableProcessors);
            gauge(registry, "system.load.average.1m", "Load of the machine.", system::getSystemLoadAverage);
        }
    }

    private static void gauge(MeterRegistry registry, String name, String help, Supplier<Number> value) {
        Gauge.builder(name, value).description(help).register(registry);
    }
}
