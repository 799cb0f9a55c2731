package io.kvcache.server.config;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/// The machine's resources, from which defaults are derived.
///
/// @param memoryBytes of the machine, or the container's limit when that is less
/// @param cores that this process may use
public record HostResources(long memoryBytes, int cores) {

    /// The one this runs on. The JVM knows of containers.
    public static HostResources detect() {
        long memory =
                ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getTotalMemorySize();
        return new HostResources(memory, Runtime.getRuntime().availableProcessors());
    }
}
