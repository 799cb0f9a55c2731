package io.kvcache.core;

import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/// Opaque objects by key, beside the blocks of a [KvCache].
///
/// **Threads.** Safe for any number of threads. Only methods with a timeout may wait, and no longer than it.
public interface ObjectStore {

    /// A timeout of zero: the call does not wait.
    Duration NO_WAIT = Duration.ZERO;

    /// Longest object key, in bytes.
    int MAX_OBJECT_KEY_BYTES = 4096;

    /// Largest object, in bytes.
    long MAX_OBJECT_BYTES = 256L << 20;

    /// Reserves room for an object. An object already stored under the key stays until the new one is sealed.
    ///
    /// Several writers may fill one key at a time, each in room of its own; the value sealed last stays.
    ///
    /// @param key 1 to 4,096 bytes
    /// @param bytes 1 to 256 MiB
    /// @param timeout how long to wait for room
    /// @return a writer whose [ObjectWriter#outcome()] says whether there is anything to write; close it in every
    ///     case
    ObjectWriter putObject(Namespace namespace, byte[] key, long bytes, Duration timeout);

    /// Stores an object by copying it.
    ///
    /// @param value 1 byte to 256 MiB, native or heap memory
    /// @param timeout how long to wait for room
    /// @return whether it is stored
    default boolean storeObject(Namespace namespace, byte[] key, MemorySegment value, Duration timeout) {
        try (ObjectWriter writer = putObject(namespace, key, value.byteSize(), timeout)) {
            if (writer.outcome() != PutOutcome.RESERVED) {
                return false;
            }
            writer.copyFrom(value);
            return writer.seal() != SealOutcome.DROPPED;
        }
    }

    /// Pins a resident object, or returns null: [#getObject(Namespace, byte[], Duration)] without waiting.
    default @Nullable ObjectView getObject(Namespace namespace, byte[] key) {
        return getObject(namespace, key, NO_WAIT);
    }

    /// Pins an object, or returns null when it is not here. Waits while it arrives from a slower tier. Close the
    /// view to release the object.
    ///
    /// @param timeout the longest wait; zero takes what is resident
    @Nullable
    ObjectView getObject(Namespace namespace, byte[] key, Duration timeout);

    /// Pins an object without a waiting thread.
    ///
    /// The stage completes on `executor` once the object is here. It completes with null when the object is
    /// unknown, does not arrive in time, or cannot be loaded.
    ///
    /// **Ownership.** The receiver of the view closes it.
    ///
    /// @param timeout how long it may take to arrive
    CompletionStage<@Nullable ObjectView> fetchObject(
            Namespace namespace, byte[] key, Duration timeout, Executor executor);

    /// Returns whether an object is here, in any tier. Pins nothing and counts as no use.
    boolean containsObject(Namespace namespace, byte[] key);

    /// Forgets an object.
    ///
    /// @return whether it was here
    boolean dropObject(Namespace namespace, byte[] key);

    /// Gives the cache a hint about objects that only the caller has. A wrong one costs hits, never correctness.
    ///
    /// @param keys in the order in which they are read; unknown keys are skipped
    /// @return the number of objects that the hint was applied to
    int hintObjects(Namespace namespace, List<byte[]> keys, ObjectHint hint);
}
