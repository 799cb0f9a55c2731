package io.kvcache.gpu.cuda;

import io.kvcache.gpu.driver.DeviceInfo;
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
    private static final int HOST_POINTERS = 91;
    private static final int NAME_BYTES = 128;

    private final CUdevice device = new CUdevice();
    private final CUcontext context = new CUcontext();
    private @Nullable Boolean hostPointers;

    /// @throws io.kvcache.gpu.driver.DeviceException when there is none
    CudaContext(int ordinal) {
        CudaResult.check("cuInit", JCudaDriver.cuInit(0));
        CudaResult.check("cuDeviceGet", JCudaDriver.cuDeviceGet(device, ordinal));
        CudaResult.check("cuDevicePrimaryCtxRetain", JCudaDriver.cuDevicePrimaryCtxRetain(context, device));
    }

    /// Makes it the calling thread's.
    void bind() {
        CudaResult.check("cuCtxSetCurrent", JCudaDriver.cuCtxSetCurrent(context));
    }

    /// Lets go of it. Answers as the driver does.
    int release() {
        return JCudaDriver.cuDevicePrimaryCtxRelease(device);
    }

    DeviceInfo info() {
        byte[] name = new byte[NAME_BYTES];
        CudaResult.check("cuDeviceGetName", JCudaDriver.cuDeviceGetName(name, NAME_BYTES, device));
        CUuuid uuid = new CUuuid();
        CudaResult.check("cuDeviceGetUuid", JCudaDriver.cuDeviceGetUuid(uuid, device));
        long[] total = new long[1];
        CudaResult.check("cuDeviceTotalMem", JCudaDriver.cuDeviceTotalMem(total, device));
        int[] version = new int[1];
        CudaResult.check("cuDriverGetVersion", JCudaDriver.cuDriverGetVersion(version));
        return new DeviceInfo(
                new String(name, StandardCharsets.US_ASCII).trim(),
                HexFormat.of().formatHex(uuid.bytes),
                total[0],
                attribute(CAPABILITY_MAJOR) + "." + attribute(CAPABILITY_MINOR),
                String.format(Locale.ROOT, "CUDA %d.%d", version[0] / 1000, version[0] % 1000 / 10));
    }

    /// Whether the device knows registered host memory by the addresses that the CPU has for it, which it does
    /// not under WSL, for one: copies of a batch, which do not say where they are from, fail then.
    boolean takesHostPointers() {
        Boolean known = hostPointers;
        if (known == null) {
            known = attribute(HOST_POINTERS) != 0;
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
    int highest() {
        int[] least = new int[1];
        int[] greatest = new int[1];
        CudaResult.check("cuCtxGetStreamPriorityRange", JCudaDriver.cuCtxGetStreamPriorityRange(least, greatest));
        return greatest[0];
    }
}
