package io.kvcache.core;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.TierSource;
import java.time.Duration;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// What an optional module does with devices of this machine, such as GPUs.
///
/// The command line finds implementations with [java.util.ServiceLoader], so it depends on no such module. A provider
/// is a public class with a public constructor without parameters, named in
/// `META-INF/services/io.kvcache.core.DeviceSupport`.
///
/// **Threads.** Any.
public interface DeviceSupport {

    /// Describes each device in one line: what it is, and what it can do.
    ///
    /// The call may take seconds, as it may measure copies. It leaves nothing behind on a device.
    ///
    /// @return one line per device, or a single line that says why no device can be used; never empty
    List<String> describeDevices();

    /// Checks that the device exists and has this much memory, free or not.
    ///
    /// @param ordinal of the device, from 0 on
    /// @param bytes at most
    /// @throws IllegalStateException when not, with the reason
    void requireDevice(int ordinal, long bytes);

    /// Returns a tier in the memory of a device, and takes nothing until a store opens it.
    ///
    /// @param ordinal of the device, from 0 on
    /// @param bytes of its memory to begin with, 1 MiB and up
    /// @param maxBytes that it may have later; as many as `bytes` for a fixed size
    /// @throws IllegalArgumentException for sizes that it does not take, with the range
    ResizableTier tier(int ordinal, long bytes, long maxBytes);

    /// Lets engines of other processes copy blocks between the store and their memory on a device.
    ///
    /// @param store of the blocks; stays the caller's, and is closed after what this returns
    /// @param ordinal of the device
    /// @param tier that [#tier] returned for the device and the store was built with, so that blocks that lie
    ///     there are copied within the device; null for none
    /// @param namespaces finds the namespace that an engine names, or null
    /// @param socket path of the unix socket where engines connect; must not exist
    /// @throws IllegalStateException when the socket cannot be made, with the reason
    EngineListener listenForEngines(
            LocalKvCache store,
            int ordinal,
            @Nullable ResizableTier tier,
            Function<String, @Nullable Namespace> namespaces,
            String socket);

    /// A tier whose size may change while a store uses it.
    interface ResizableTier extends TierSource {

        /// Returns the bytes that it has of the device now; 0 while the device is out.
        long bytes();

        /// Takes more memory of the device, or gives memory back to it. One call at a time; others wait.
        ///
        /// @param bytes as many as it may have, or up to a region less
        /// @param timeout for calls before this one, and for blocks that are held; what is held longer stays
        /// @throws IllegalArgumentException for fewer bytes than it takes, or more, with the range
        Resized resize(long bytes, Duration timeout);
    }

    /// The size of a tier.
    ///
    /// @param before bytes that it had
    /// @param after bytes that it has now
    /// @param reason why it has not as many as were asked for; empty when it has
    record Resized(long before, long after, String reason) {}

    /// Where engines connect.
    interface EngineListener extends AutoCloseable {

        /// Engines that are connected.
        int engineCount();

        /// Ends all connections and running copies, a bounded time, and removes the socket.
        @Override
        void close();
    }
}
