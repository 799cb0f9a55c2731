package io.kvcache.tiers.memory;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.CountDownLatch;

/// A native call that is inside a segment until it is released: `qsort` over it, whose comparison waits.
final class BlockedSegment {

    private final CountDownLatch inside = new CountDownLatch(1);
    private final CountDownLatch released = new CountDownLatch(1);

    private BlockedSegment() {}

    /// Returns when the call is inside.
    static BlockedSegment hold(MemorySegment segment) throws InterruptedException {
        BlockedSegment held = new BlockedSegment();
        Thread.ofPlatform().daemon().start(() -> held.sort(segment));
        held.inside.await();
        return held;
    }

    void release() {
        released.countDown();
    }

    @SuppressWarnings("restricted") // A native call with a known signature is what this double is.
    private void sort(MemorySegment segment) {
        Linker linker = Linker.nativeLinker();
        FunctionDescriptor comparison = FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS);
        FunctionDescriptor signature = FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG, JAVA_LONG, ADDRESS);
        try (Arena arena = Arena.ofConfined()) {
            MethodHandle waits = MethodHandles.lookup()
                    .bind(this, "compare", MethodType.methodType(int.class, MemorySegment.class, MemorySegment.class));
            MethodHandle qsort =
                    linker.downcallHandle(linker.defaultLookup().find("qsort").orElseThrow(), signature);
            qsort.invokeExact(segment, 2L, 8L, linker.upcallStub(waits, comparison, arena));
        } catch (Throwable failure) {
            throw new AssertionError(failure);
        }
    }

    /// Called by `qsort`, through a method handle.
    int compare(MemorySegment left, MemorySegment right) {
        inside.countDown();
        boolean interrupted = true;
        while (interrupted) {
            try {
                released.await();
                interrupted = false;
            } catch (InterruptedException ignored) {
                Thread.onSpinWait();
            }
        }
        return 0;
    }
}
