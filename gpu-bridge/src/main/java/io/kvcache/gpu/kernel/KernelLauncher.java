package io.kvcache.gpu.kernel;

import io.kvcache.gpu.driver.DeviceKernel;
import io.kvcache.gpu.driver.DeviceProgram;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.KernelArguments;

/// Runs kernels of one program, each over as many items as there are.
///
/// @param maxGroups of threads that one call takes at a time
record KernelLauncher(DeviceProgram program, int maxGroups) {

    /// Whole warps, as kernels count on.
    private static final int THREADS = 256;

    private static final int VECTOR_WIDTH = 8;

    DeviceKernel kernel(String name) {
        return program.kernel(name);
    }

    void launch(DeviceStream stream, DeviceKernel kernel, long items, KernelArguments arguments) {
        long groups = Math.clamp((items + THREADS - 1) / THREADS, 1, maxGroups);
        stream.launch(kernel, (int) groups, THREADS, arguments);
    }

    /// Threads for values in groups: one for eight values where groups are of multiples of eight, else
    /// one a group.
    static long vectorItems(long values, int group) {
        return values / (group % VECTOR_WIDTH == 0 ? VECTOR_WIDTH : group);
    }

    /// Refuses a list of places that is shorter than said.
    static void requireAddressList(DeviceSpan places, int count) {
        require(count > 0 && places.bytes() >= 8L * count, "count", count);
    }

    /// Refuses what begins where the device could not read it as it does: that would end it.
    static void requireAligned(String what, DeviceSpan span, int bytes) {
        long at = span.address().value();
        if (at % bytes != 0) {
            throw new IllegalArgumentException("%s begin at 0x%x; it takes multiples of %d".formatted(what, at, bytes));
        }
    }

    static void require(boolean holds, String what, long value) {
        if (!holds) {
            throw new IllegalArgumentException(what + " " + value + " does not fit the rest");
        }
    }
}
