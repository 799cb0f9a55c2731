package io.kvcache.server;

import com.sun.management.UnixOperatingSystemMXBean;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.management.ManagementFactory;

/// How many connections there can be with the files that this process may open: each is one.
final class FileDescriptorLimit {

    private static final Logger LOG = System.getLogger(FileDescriptorLimit.class.getName());

    /// Descriptors that a server needs beside connections: libraries, disks, event loops, and health probes.
    private static final int RESERVED_DESCRIPTORS = 384;

    /// With fewer connections a server is of no use.
    private static final int MIN_CONNECTIONS = 64;

    private FileDescriptorLimit() {}

    /// Returns how many descriptors this process may open; `Long.MAX_VALUE` where that is not known.
    static long limit() {
        return ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean unix
                ? unix.getMaxFileDescriptorCount()
                : Long.MAX_VALUE;
    }

    /// The connections that a server takes: as many as are asked for, or as there can be.
    ///
    /// @param requested connections of `limits.connections`
    /// @param transport connections of `transport.connections`
    /// @throws IOException when there can be hardly any; the message names the limit, the need and what to do
    static int maxConnections(int requested, int transport, long limit) throws IOException {
        long room = limit - RESERVED_DESCRIPTORS - transport;
        if (room >= requested) {
            return requested;
        }
        String lack = "this process may open " + limit + " files (ulimit -n); limits.connections of " + requested
                + (transport == 0 ? "" : " and transport.connections of " + transport) + " take "
                + ((long) requested + transport + RESERVED_DESCRIPTORS);
        String advice = "raise it (ulimit -n 65536, systemd: LimitNOFILE=65536, docker: --ulimit nofile=65536) or set"
                + " limits.connections lower";
        if (room < Math.min(requested, MIN_CONNECTIONS)) {
            throw new IOException(lack + "; " + advice);
        }
        LOG.log(Level.WARNING, "{0}, so {1} connections are taken at one time; {2}", lack, room, advice);
        return (int) room;
    }
}
