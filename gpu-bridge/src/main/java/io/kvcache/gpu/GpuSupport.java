package io.kvcache.gpu;

import io.kvcache.core.DeviceSupport;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.identity.Namespace;
import io.kvcache.gpu.cuda.CudaDriver;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.engine.EngineIpcServer;
import io.kvcache.gpu.engine.ServedTier;
import io.kvcache.gpu.tier.CudaTier;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/// The GPUs of this machine, as a server uses them.
public final class GpuSupport implements DeviceSupport {

    private static final double GIBIBYTE = 1L << 30;

    private final IntFunction<DeviceDriver> devices;

    /// Uses NVIDIA's driver.
    public GpuSupport() {
        this(CudaDriver::open);
    }

    /// @param devices opens a device by its number
    GpuSupport(IntFunction<DeviceDriver> devices) {
        this.devices = devices;
    }

    @Override
    public List<String> describeDevices() {
        return new GpuProbe(devices).describeDevices();
    }

    @Override
    public void requireDevice(int ordinal, long bytes) {
        try (DeviceDriver driver = devices.apply(ordinal)) {
            long most = driver.info().totalBytes();
            if (bytes > most) {
                throw new IllegalStateException(String.format(
                        Locale.ROOT,
                        "GPU %d (%s) has %.1f GiB of memory, not %.1f",
                        ordinal,
                        driver.info().name(),
                        most / GIBIBYTE,
                        bytes / GIBIBYTE));
            }
        } catch (DeviceException refused) {
            throw new IllegalStateException(refused.getMessage(), refused);
        }
    }

    @Override
    public ResizableTier tier(int ordinal, long bytes, long maxBytes) {
        return new ServedTier(CudaTier.withDriver("GPU " + ordinal, () -> devices.apply(ordinal), bytes, maxBytes));
    }

    @Override
    public EngineListener listenForEngines(
            LocalKvCache store,
            int ordinal,
            @Nullable ResizableTier tier,
            Function<String, @Nullable Namespace> namespaces,
            String socket) {
        try {
            return EngineIpcServer.open(
                    store, (ServedTier) tier, () -> devices.apply(ordinal), namespaces, Path.of(socket));
        } catch (UncheckedIOException refused) {
            IOException cause = refused.getCause();
            throw new IllegalStateException(
                    refused.getMessage() + (cause == null ? "" : ": " + cause.getMessage()), refused);
        }
    }
}
