package io.kvcache.gpu.driver;

import org.jspecify.annotations.Nullable;

/// Which thread uses a device now.
///
/// A device's context is bound to the thread of the operating system that runs, which for a virtual
/// thread is another one whenever it waited.
public final class DeviceThread {

    private static final ThreadLocal<DeviceThread> LAST_OF_THREAD = new ThreadLocal<>();

    private @Nullable Thread current;

    /// Notes that the calling thread uses the device.
    ///
    /// @return whether another one did before, or this one has used another device since
    /// @throws IllegalStateException for a virtual thread
    public boolean enter() {
        Thread caller = Thread.currentThread();
        if (caller.equals(current) && equals(LAST_OF_THREAD.get())) {
            return false;
        }
        if (caller.isVirtual()) {
            throw new IllegalStateException("a device belongs to a platform thread, and " + caller + " is virtual");
        }
        current = caller;
        LAST_OF_THREAD.set(this);
        return true;
    }

    /// The calling thread could not take the device over after all.
    public void leave() {
        current = null;
    }
}
