package io.kvcache.gpu.cuda;

import jcuda.driver.CUstream;

/// A stream of JCuda's whose handle can be passed on.
final class CudaStreamHandle extends CUstream {

    long value() {
        return getNativePointer();
    }
}
