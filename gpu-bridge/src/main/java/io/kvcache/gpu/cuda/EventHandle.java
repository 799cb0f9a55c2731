package io.kvcache.gpu.cuda;

import jcuda.driver.CUevent;
import jcuda.driver.JCudaDriver;

/// What is done with an event of the driver's. All answer as the driver does.
interface EventHandle {

    int query();

    int record(StreamHandle stream);

    int holdBack(StreamHandle stream);

    int destroy();

    /// The driver's number of it, where it can be had; 0 else.
    long value();

    /// One that JCuda made.
    record OfJcuda(CUevent event) implements EventHandle {

        @Override
        public int query() {
            return JCudaDriver.cuEventQuery(event);
        }

        @Override
        public int record(StreamHandle stream) {
            return JCudaDriver.cuEventRecord(event, stream);
        }

        @Override
        public int holdBack(StreamHandle stream) {
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
    record OfNumber(SharingCalls calls, long value) implements EventHandle {

        @Override
        public int query() {
            return calls.query(value);
        }

        @Override
        public int record(StreamHandle stream) {
            return calls.record(value, stream.value());
        }

        @Override
        public int holdBack(StreamHandle stream) {
            return calls.holdBack(value, stream.value());
        }

        @Override
        public int destroy() {
            return calls.destroy(value);
        }
    }
}
