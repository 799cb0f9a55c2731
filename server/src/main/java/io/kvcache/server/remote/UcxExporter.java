package io.kvcache.server.remote;

import io.kvcache.core.LocalKvCache;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.transport.ucx.UcxMemory;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import org.jspecify.annotations.Nullable;

/// Offers a server's store over UCX, if the settings say so. Whatever it takes for that and is not
/// here costs a line in the log: clients get their blocks by message then.
///
/// UCX asks nobody who he is, and over TCP listens at ports of its own: whoever reaches one can
/// read and write all of the process. So it uses no network but loopback where the endpoint uses no
/// other.
final class UcxExporter {

    private static final Logger LOG = System.getLogger(UcxExporter.class.getName());

    private static final String LOOPBACK = "lo";

    private UcxExporter() {}

    /// The store's slots over UCX, or null where there is none.
    static @Nullable UcxMemory open(TransportConfig config, LocalKvCache cache) {
        if (!config.ucx().isEnabled()) {
            return null;
        }
        SharedMemory shared = cache.sharedMemory();
        if (shared == null) {
            LOG.log(Level.INFO, "Clients do not read over UCX: there was no room to share memory");
            return null;
        }
        try {
            boolean local = config.isLoopbackOnly();
            UcxMemory offered = UcxMemory.export(shared, config.ucx().transports(), local ? LOOPBACK : "");
            LOG.log(
                    Level.INFO,
                    "Clients may read over UCX ({0}, {1})",
                    config.ucx().text(),
                    local ? "loopback alone" : "which trusts whoever reaches it");
            return offered;
        } catch (IOException missing) {
            LOG.log(Level.INFO, "Clients do not read over UCX: {0}", missing.getMessage());
            return null;
        }
    }
}
