package io.kvcache.gpu.cuda;

import jcuda.driver.CUstream;

/// A stream of JCuda's whose handle can be passed on.
final class StreamHandle extends CUstream {

    long value() {
        return getNativePointer();
    }
}
