package io.kvcache.gpu.driver;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;

/// Resources of a device that are released together, last first: at the end, or when a later one cannot be
/// acquired. A release that fails does not stop the others.
///
/// **Threads.** The driver's.
public final class ResourceScope {

    private final Deque<Runnable> releases = new ArrayDeque<>();

    /// Nothing yet.
    public ResourceScope() {}

    /// Notes what was taken.
    ///
    /// @param giveBack called once
    /// @return the thing
    public <T> T register(T thing, Consumer<? super T> giveBack) {
        releases.push(() -> giveBack.accept(thing));
        return thing;
    }

    /// Notes what else is to be done.
    public void register(Runnable giveBack) {
        releases.push(giveBack);
    }

    /// Gives all of it back; a second time, nothing.
    ///
    /// @throws DeviceException the first that the device refused
    public void releaseAll() {
        DeviceException first = null;
        for (Runnable each = releases.poll(); each != null; each = releases.poll()) {
            try {
                each.run();
            } catch (DeviceException refused) {
                first = first == null ? refused : first;
            }
        }
        if (first != null) {
            throw first;
        }
    }

    /// The same, as the rest is not to be had.
    ///
    /// @return why, to be thrown
    public DeviceException releaseAfter(DeviceException why) {
        try {
            releaseAll();
        } catch (DeviceException refused) {
            why.addSuppressed(refused);
        }
        return why;
    }
}
