package io.kvcache.gpu.driver;

import org.jspecify.annotations.Nullable;

/// Binds a device to the thread that uses it now.
///
/// A device's context is bound to the thread of the operating system that runs, which for a virtual
/// thread is another one whenever it waited.
public final class DeviceThreadBinding {

    private static final ThreadLocal<DeviceThreadBinding> LAST_BINDING = new ThreadLocal<>();

    private @Nullable Thread current;

    /// Notes that the calling thread uses the device.
    ///
    /// @return whether another one did before, or this one has used another device since
    /// @throws IllegalStateException for a virtual thread
    public boolean bindCurrentThread() {
        Thread caller = Thread.currentThread();
        if (caller.equals(current) && equals(LAST_BINDING.get())) {
            return false;
        }
        if (caller.isVirtual()) {
            throw new IllegalStateException("a device belongs to a platform thread, and " + caller + " is virtual");
        }
        current = caller;
        LAST_BINDING.set(this);
        return true;
    }

    /// The calling thread could not take the device over after all.
    public void reset() {
        current = null;
    }
}
