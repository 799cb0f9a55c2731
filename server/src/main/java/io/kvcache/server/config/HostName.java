package io.kvcache.server.config;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;

/// The name of this machine or container.
public final class HostName {

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
