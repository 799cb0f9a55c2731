package io.kvcache.server;

import io.kvcache.core.DeviceSupport;
import io.kvcache.core.DeviceSupport.EngineListener;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.TierSource;
import io.kvcache.server.config.GpuConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.tiers.TieredKvCache;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/// The GPUs of a server, by the module that uses them, if it is on the class path.
final class GpuDevices {

    private static final Logger LOG = System.getLogger(GpuDevices.class.getName());

    /// A process that may map the store may also connect here, and no other: the directory has mode 0700.
    private static final String SOCKET_PREFIX = "gpu-";

    private GpuDevices() {}

    private static @Nullable DeviceSupport support() {
        return ServiceLoader.load(DeviceSupport.class).findFirst().orElse(null);
    }

    private static DeviceSupport requireSupport(GpuConfig gpu) {
        DeviceSupport support = support();
        if (support == null) {
            throw new IllegalStateException(gpu.name() + ": this server has no module for GPUs; put the jars"
                    + " kvcache-gpu-bridge and jcuda beside it on the class path, as ./kvcache serve does");
        }
        return support;
    }

    /// Checks that each GPU is there and has the memory.
    ///
    /// @throws IllegalStateException that names the setting and says what is missing
    static void requireAll(ServerConfig config) {
        for (GpuConfig gpu : config.disks().gpus()) {
            DeviceSupport support = requireSupport(gpu);
            if (!gpu.isTier() && sharedDirectory(config) == null) {
                throw new IllegalStateException(
                        gpu.name() + " has no bytes, and engines cannot connect, as the store"
                                + " shares no memory (transport.listen, transport.shared_memory); give it bytes or share memory");
            }
            try {
                support.requireDevice(gpu.device(), gpu.bytes());
            } catch (IllegalStateException refused) {
                throw new IllegalStateException(gpu.name() + ": " + refused.getMessage(), refused);
            }
        }
    }

    /// Tiers in the memory of GPUs by the number of the GPU; they take nothing yet. None without the module.
    static Map<Integer, TierSource> tiers(ServerConfig config) {
        Map<Integer, TierSource> tiers = new LinkedHashMap<>();
        for (GpuConfig gpu : config.disks().gpus()) {
            DeviceSupport support = support();
            if (support != null && gpu.isTier()) {
                tiers.put(gpu.device(), support.tier(gpu.device(), gpu.bytes()));
            }
        }
        return tiers;
    }

    /// Lets engines connect, one socket a GPU, in the directory of the store's shared memory. An engine names a
    /// namespace by its digest in hexadecimal.
    ///
    /// @param tiers that the store was built with
    /// @throws IllegalStateException when a socket cannot be made
    static List<EngineListener> listen(ServerConfig config, TieredKvCache cache, Map<Integer, TierSource> tiers) {
        List<EngineListener> listeners = new ArrayList<>();
        for (GpuConfig gpu : config.disks().gpus()) {
            Path directory = cache.sharedMemory() == null ? null : sharedDirectory(config);
            if (directory == null) {
                LOG.log(
                        Level.WARNING,
                        "{0}: engines cannot connect, as the store shares no memory (transport.shared_memory)",
                        gpu.name());
                continue;
            }
            Path socket = directory.resolve(SOCKET_PREFIX + gpu.device());
            try {
                listeners.add(requireSupport(gpu)
                        .listenForEngines(
                                cache,
                                gpu.device(),
                                tiers.get(gpu.device()),
                                digest -> namespaceOf(cache, digest),
                                socket.toString()));
            } catch (IllegalStateException refused) {
                listeners.forEach(EngineListener::close);
                throw new IllegalStateException(gpu.name() + ": " + refused.getMessage(), refused);
            }
            LOG.log(Level.INFO, "Engines on GPU {0} connect at {1}", gpu.device(), socket);
        }
        return listeners;
    }

    private static @Nullable Path sharedDirectory(ServerConfig config) {
        return config.transport().sharedMemoryDirectory(config.access().tenants());
    }

    private static @Nullable Namespace namespaceOf(TieredKvCache cache, String digest) {
        return cache.stats().namespaces().stream()
                .map(NamespaceStats::namespace)
                .filter(each -> HexFormat.of().formatHex(each.digest()).equals(digest))
                .findFirst()
                .orElse(null);
    }
}
