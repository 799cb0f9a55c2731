package io.kvcache.gpu.cuda;

import io.kvcache.gpu.cuda.CudaHandles.CudaStreamHandle;
import io.kvcache.gpu.driver.DeviceEvent;
import jcuda.driver.CUevent;
import jcuda.driver.JCudaDriver;

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

    /// Calls on an event of the driver. All return the driver's result.
    interface CudaEventHandle {

        int query();

        int record(CudaStreamHandle stream);

        int blockStream(CudaStreamHandle stream);

        int destroy();

        /// The driver's number of it, where it can be had; 0 else.
        long value();

        record JcudaEvent(CUevent event) implements CudaEventHandle {

            @Override
            public int query() {
                return JCudaDriver.cuEventQuery(event);
            }

            @Override
            public int record(CudaStreamHandle stream) {
                return JCudaDriver.cuEventRecord(event, stream);
            }

            @Override
            public int blockStream(CudaStreamHandle stream) {
                return JCudaDriver.cuStreamWaitEvent(stream, event, 0);
            }

            @Override
            public int destroy() {
                return JCudaDriver.cuEventDestroy(event);
            }

            @Override
            public long value() {
                return 0;
            }
        }

        /// One that is shared between processes: JCuda cannot make an object of its number.
        record IpcEvent(CudaIpc calls, long value) implements CudaEventHandle {

            @Override
            public int query() {
                return calls.query(value);
            }

            @Override
            public int record(CudaStreamHandle stream) {
                return calls.record(value, stream.value());
            }

            @Override
            public int blockStream(CudaStreamHandle stream) {
                return calls.blockStream(value, stream.value());
            }

            @Override
            public int destroy() {
                return calls.destroy(value);
            }
        }
    }
}
