package io.kvcache.tiers.memory;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.kvcache.tiers.os.Libc;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Optional;
import java.util.concurrent.Semaphore;

/// An `madvise` that advises nothing, and of which each call lasts until it is released.
final class BlockingMadvise {

    private final Semaphore calls = new Semaphore(0);
    private final Semaphore released = new Semaphore(0);

    /// The calls of this machine but for that one.
    @SuppressWarnings("restricted") // A C function with a known signature is what this double is.
    Libc libc() throws ReflectiveOperationException {
        Linker linker = Linker.nativeLinker();
        MethodHandle advise = MethodHandles.lookup()
                .bind(this, "advise", MethodType.methodType(int.class, MemorySegment.class, long.class, int.class));
        MemorySegment madvise = linker.upcallStub(
                advise, FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT), Arena.ofAuto());
        return Libc.bind(name -> name.equals("madvise")
                ? Optional.of(madvise)
                : linker.defaultLookup().find(name));
    }

    /// Returns when another call is under way.
    void awaitCall() throws InterruptedException {
        calls.acquire();
    }

    /// Lets one call end.
    void releaseOne() {
        released.release();
    }

    /// Called by the stub.
    int advise(MemorySegment span, long bytes, int advice) {
        calls.release();
        released.acquireUninterruptibly();
        return 0;
    }
}
