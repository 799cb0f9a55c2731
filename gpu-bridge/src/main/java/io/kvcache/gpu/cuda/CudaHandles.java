package io.kvcache.gpu.cuda;

import io.kvcache.gpu.driver.DeviceAddress;
import java.lang.foreign.MemorySegment;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUstream;
import jcuda.runtime.cudaStream_t;

/// JCuda's objects for addresses and streams, and the numbers behind them. JCuda itself makes none of a number and
/// gives the number to its subclasses only.
final class CudaHandles {

    private CudaHandles() {}

    /// A device address.
    static final class DevicePointer extends CUdeviceptr {

        /// To be filled in by an allocation.
        DevicePointer() {}

        DevicePointer(long address) {
            super(new CUdeviceptr(), address);
        }

        DeviceAddress address() {
            return new DeviceAddress(getNativePointer() + getByteOffset());
        }
    }

    /// The address of native host memory.
    static final class HostPointer extends Pointer {

        HostPointer(MemorySegment host) {
            this(host.address());
        }

        HostPointer(long address) {
            super(address);
        }
    }

    /// A stream.
    static final class CudaStreamHandle extends CUstream {

        /// To be filled in by the driver.
        CudaStreamHandle() {}

        /// One that others have made.
        CudaStreamHandle(CUstream stream) {
            super(new cudaStream_t(stream));
        }

        long value() {
            return getNativePointer();
        }
    }
}
