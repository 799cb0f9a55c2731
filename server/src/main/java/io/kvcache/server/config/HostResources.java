package io.kvcache.server.config;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;

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

    /// The name of this machine or container.
    public static final class HostName {

        private static final Path KERNEL = Path.of("/proc/sys/kernel/hostname");

        private HostName() {}

        /// Returns the system's name for itself. Where the kernel tells it, no name service is asked.
        public static String detect() {
            try {
                return Files.readString(KERNEL).strip();
            } catch (IOException otherSystem) {
                return detectByNameService();
            }
        }

        private static String detectByNameService() {
            try {
                return InetAddress.getLocalHost().getHostName();
            } catch (UnknownHostException unnamed) {
                return "localhost";
            }
        }
    }
}
