package io.kvcache.server;

import com.sun.management.UnixOperatingSystemMXBean;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.management.ManagementFactory;

/// How many connections there can be with the files that this process may open: each is one.
final class OpenFiles {

    private static final Logger LOG = System.getLogger(OpenFiles.class.getName());

    /// What else a server has open: libraries, disks, event loops, and connections that ask for its health.
    private static final int OTHERS = 384;

    /// With fewer connections a server is of no use.
    private static final int FEWEST = 64;

    private OpenFiles() {}

    /// What this process may open; where that is not known, as many as one likes.
    static long limit() {
        return ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean unix
                ? unix.getMaxFileDescriptorCount()
                : Long.MAX_VALUE;
    }

    /// The connections that a server takes: as many as are asked for, or as there can be.
    ///
    /// @param asked connections of `limits.connections`
    /// @param transport connections of `transport.connections`
    /// @throws IOException when there can be hardly any; the message names the limit, the need and what to do
    static int connections(int asked, int transport, long limit) throws IOException {
        long room = limit - OTHERS - transport;
        if (room >= asked) {
            return asked;
        }
        String lack = "this process may open " + limit + " files (ulimit -n); limits.connections of " + asked
                + (transport == 0 ? "" : " and transport.connections of " + transport) + " take "
                + ((long) asked + transport + OTHERS);
        String advice = "raise it (ulimit -n 65536, systemd: LimitNOFILE=65536, docker: --ulimit nofile=65536) or set"
                + " limits.connections lower";
        if (room < Math.min(asked, FEWEST)) {
            throw new IOException(lack + "; " + advice);
        }
        LOG.log(Level.WARNING, "{0}, so {1} connections are taken at one time; {2}", lack, room, advice);
        return (int) room;
    }
}
