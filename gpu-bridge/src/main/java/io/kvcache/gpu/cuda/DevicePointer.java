package io.kvcache.gpu.cuda;

import io.kvcache.gpu.driver.DeviceAddress;
import jcuda.driver.CUdeviceptr;

/// An address of the device's, as JCuda takes and gives it. JCuda has no way to make one of a number but
/// as an offset from nothing, and none to read it but from within.
final class DevicePointer extends CUdeviceptr {

    /// To be filled in by an allocation.
    DevicePointer() {}

    DevicePointer(long address) {
        super(new CUdeviceptr(), address);
    }

    DeviceAddress address() {
        return new DeviceAddress(getNativePointer() + getByteOffset());
    }
}
