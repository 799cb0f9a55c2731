package io.kvcache.server;

import io.kvcache.core.DeviceSupport;
import io.kvcache.core.DeviceSupport.EngineListener;
import io.kvcache.core.DeviceSupport.ResizableTier;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.GpuConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.metrics.ServerMetrics;
import io.kvcache.tiers.TieredKvCache;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/// The GPUs of a server, by the module that uses them, if it is on the class path: tiers in their memory, and the
/// engines that connect.
///
/// **Threads.** Any; [#listen] and [#close] by that which opens the store.
final class GpuDevices implements AutoCloseable {

    private static final Logger LOG = System.getLogger(GpuDevices.class.getName());

    /// A process that may map the store may also connect here, and no other: the directory has mode 0700.
    private static final String SOCKET_PREFIX = "gpu-";

    private final Map<GpuConfig, ResizableTier> tiers;
    private final List<EngineListener> listeners = new ArrayList<>();

    private GpuDevices(Map<GpuConfig, ResizableTier> tiers) {
        this.tiers = tiers;
    }

    private static @Nullable DeviceSupport support() {
        return ServiceLoader.load(DeviceSupport.class).findFirst().orElse(null);
    }

    private static DeviceSupport requireSupport(GpuConfig gpu) {
        DeviceSupport support = support();
        if (support == null) {
            throw new IllegalStateException(gpu.name() + ": this server has no module for GPUs; use ./kvcache serve,"
                    + " or make it anew with the module: ./kvcache jar --gpu, ./kvcache image --gpu");
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
                support.requireDevice(gpu.device(), gpu.maxBytes());
            } catch (IllegalStateException refused) {
                throw new IllegalStateException(gpu.name() + ": " + refused.getMessage(), refused);
            }
        }
    }

    /// The GPUs, with tiers that take nothing yet; no tiers without the module.
    ///
    /// @throws IllegalStateException for a size that a tier does not take, with the setting and the range
    static GpuDevices of(ServerConfig config) {
        Map<GpuConfig, ResizableTier> tiers = new LinkedHashMap<>();
        for (GpuConfig gpu : config.disks().gpus()) {
            DeviceSupport support = support();
            if (support != null && gpu.isTier()) {
                try {
                    tiers.put(gpu, support.tier(gpu.device(), gpu.bytes(), gpu.maxBytes()));
                } catch (IllegalArgumentException refused) {
                    throw new IllegalStateException(gpu.name() + ": " + refused.getMessage(), refused);
                }
            }
        }
        return new GpuDevices(tiers);
    }

    /// Tiers of a store.
    Collection<ResizableTier> tiers() {
        return tiers.values();
    }

    /// The same by the settings that they come from.
    Map<GpuConfig, ResizableTier> tiersByConfig() {
        return tiers;
    }

    /// Lets engines connect, one socket a GPU, in the directory of the store's shared memory. An engine names a
    /// namespace by its digest in hexadecimal.
    ///
    /// @param cache that was built with the tiers
    /// @throws IllegalStateException when a socket cannot be made
    void listen(ServerConfig config, TieredKvCache cache) {
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
                                tiers.get(gpu),
                                digest -> namespaceOf(cache, digest),
                                socket.toString()));
            } catch (IllegalStateException refused) {
                throw new IllegalStateException(gpu.name() + ": " + refused.getMessage(), refused);
            }
            LOG.log(Level.INFO, "Engines on GPU {0} connect at {1}", gpu.device(), socket);
        }
    }

    /// Meters of the engines that are connected, and of each tier.
    List<MeterBinder> meters() {
        List<MeterBinder> meters = new ArrayList<>();
        meters.add(ServerMetrics.ofEngines(
                () -> listeners.stream().mapToInt(EngineListener::engineCount).sum()));
        tiers.forEach((gpu, tier) -> meters.add(ServerMetrics.ofGpu(gpu.device(), tier::bytes)));
        return meters;
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

    /// Lets engines go. The tiers are the store's.
    @Override
    public void close() {
        listeners.forEach(EngineListener::close);
    }
}
