package io.kvcache.gpu.cuda;

import io.kvcache.gpu.driver.DeviceKernel;
import io.kvcache.gpu.driver.DeviceProgram;

/// A module of the driver's.
final class CudaProgram implements DeviceProgram {

    private final CudaDriver driver;
    private final CudaModules calls;
    private final long handle;
    private boolean closed;

    CudaProgram(CudaDriver driver, CudaModules calls, long handle) {
        this.driver = driver;
        this.calls = calls;
        this.handle = handle;
    }

    @Override
    public DeviceKernel kernel(String name) {
        driver.enter();
        requireOpen();
        CudaModules.ModuleResult found = calls.findFunction(handle, name);
        driver.check("cuModuleGetFunction " + name, found.result());
        return new DeviceKernel(name, found.handle());
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the program is closed");
        }
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        driver.forget(this);
        driver.releaseQuietly("cuModuleUnload", () -> calls.unload(handle));
    }
}
