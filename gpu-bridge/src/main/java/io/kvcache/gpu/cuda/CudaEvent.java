package io.kvcache.gpu.cuda;

import io.kvcache.gpu.driver.DeviceEvent;

/// An event without a time.
final class CudaEvent implements DeviceEvent {

    private final CudaDriver driver;
    private final CudaEventHandle handle;
    private boolean closed;

    CudaEvent(CudaDriver driver, CudaEventHandle handle) {
        this.driver = driver;
        this.handle = handle;
    }

    CudaEventHandle handle() {
        requireOpen();
        return handle;
    }

    @Override
    public boolean isReached() {
        driver.enter();
        requireOpen();
        int result = handle.query();
        if (result == CudaResult.NOT_READY) {
            return false;
        }
        driver.check("cuEventQuery", result);
        return true;
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the event is closed");
        }
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        driver.forget(this);
        driver.releaseQuietly("cuEventDestroy", handle::destroy);
    }
}
