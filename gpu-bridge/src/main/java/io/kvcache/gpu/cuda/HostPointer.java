package io.kvcache.gpu.cuda;

import java.lang.foreign.MemorySegment;
import jcuda.Pointer;

/// The address of native host memory, as JCuda takes it.
final class HostPointer extends Pointer {

    HostPointer(MemorySegment host) {
        this(host.address());
    }

    HostPointer(long address) {
        super(address);
    }
}
