package io.kvcache.gpu.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.kvcache.gpu.driver.DeviceDriver.DeviceInfo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Locale;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUuuid;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/// A device of the driver's with its primary context, which all of a process share.
final class CudaContext {

    private static final int CAPABILITY_MAJOR = 75;
    private static final int CAPABILITY_MINOR = 76;
    private static final int HOST_POINTER_ATTRIBUTE = 91;
    private static final int NAME_BYTES = 128;
    private static final int UUID_BYTES = 16;

    private final CudaLibrary library;
    private final int ordinal;
    private final CUdevice device = new CUdevice();
    private final CUcontext context = new CUcontext();
    private @Nullable Boolean hostPointers;

    /// @throws io.kvcache.gpu.driver.DeviceException when there is none
    CudaContext(CudaLibrary library, int ordinal) {
        this.library = library;
        this.ordinal = ordinal;
        CudaResult.check("cuInit", JCudaDriver.cuInit(0));
        CudaResult.check("cuDeviceGet", JCudaDriver.cuDeviceGet(device, ordinal));
        CudaResult.check("cuDevicePrimaryCtxRetain", JCudaDriver.cuDevicePrimaryCtxRetain(context, device));
    }

    /// Makes it the calling thread's.
    void bind() {
        CudaResult.check("cuCtxSetCurrent", makeCurrent());
    }

    /// The same. Answers as the driver does.
    int makeCurrent() {
        return JCudaDriver.cuCtxSetCurrent(context);
    }

    int ordinal() {
        return ordinal;
    }

    /// Keeps it once more, to be let go of once more. Answers as the driver does.
    int retain() {
        return JCudaDriver.cuDevicePrimaryCtxRetain(new CUcontext(), device);
    }

    /// Lets go of it. Answers as the driver does.
    int release() {
        return JCudaDriver.cuDevicePrimaryCtxRelease(device);
    }

    DeviceInfo info() {
        byte[] name = new byte[NAME_BYTES];
        CudaResult.check("cuDeviceGetName", JCudaDriver.cuDeviceGetName(name, NAME_BYTES, device));
        long[] total = new long[1];
        CudaResult.check("cuDeviceTotalMem", JCudaDriver.cuDeviceTotalMem(total, device));
        int[] version = new int[1];
        CudaResult.check("cuDriverGetVersion", JCudaDriver.cuDriverGetVersion(version));
        return new DeviceInfo(
                new String(name, StandardCharsets.US_ASCII).trim(),
                HexFormat.of().formatHex(uuid()),
                total[0],
                attribute(CAPABILITY_MAJOR) + "." + attribute(CAPABILITY_MINOR),
                String.format(Locale.ROOT, "CUDA %d.%d", version[0] / 1000, version[0] % 1000 / 10));
    }

    /// Returns the UUID that engines ask for. For a part of a device (MIG) that is the part's own, while JCuda has
    /// only the call for the whole device.
    private byte[] uuid() {
        MethodHandle ofParts = library.bindIfPresent("cuDeviceGetUuid_v2", ADDRESS, JAVA_INT);
        if (ofParts == null) {
            CUuuid uuid = new CUuuid();
            CudaResult.check("cuDeviceGetUuid", JCudaDriver.cuDeviceGetUuid(uuid, device));
            return uuid.bytes;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment uuid = arena.allocate(UUID_BYTES);
            CudaResult.check("cuDeviceGetUuid_v2", CudaLibrary.invoke(() -> (int) ofParts.invokeExact(uuid, ordinal)));
            return uuid.toArray(JAVA_BYTE);
        }
    }

    /// Returns whether the device uses the CPU's addresses for registered host memory. Under WSL, for example, it
    /// does not. Batched copies do not say which side an address is of, so they fail then.
    boolean supportsHostPointers() {
        Boolean known = hostPointers;
        if (known == null) {
            known = attribute(HOST_POINTER_ATTRIBUTE) != 0;
            hostPointers = known;
        }
        return known;
    }

    private int attribute(int number) {
        int[] value = new int[1];
        CudaResult.check("cuDeviceGetAttribute", JCudaDriver.cuDeviceGetAttribute(value, number, device));
        return value[0];
    }

    /// The priority of the most urgent streams.
    int highestPriority() {
        int[] least = new int[1];
        int[] greatest = new int[1];
        CudaResult.check("cuCtxGetStreamPriorityRange", JCudaDriver.cuCtxGetStreamPriorityRange(least, greatest));
        return greatest[0];
    }
}
