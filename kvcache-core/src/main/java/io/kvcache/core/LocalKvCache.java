package io.kvcache.core;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.shm.SharedMemory;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A cache whose memory lies in this process: it adds what only the owner of the memory can offer.
///
/// **Threads.** Safe for any number of threads.
public interface LocalKvCache extends KvCache {

    /// Reserves room for an object that readers fetch after another one.
    ///
    /// @param predecessor key of the object that readers fetch first; it is not evicted earlier while both are
    ///     resident. Null for the first of a sequence. A wrong key costs hits, never correctness
    /// @return as [#putObject(Namespace, byte[], long, Duration)]
    ObjectWriter putObject(
            Namespace namespace, byte[] key, byte @Nullable [] predecessor, long bytes, Duration timeout);

    /// Records that readers fetch `predecessor` before `key`, so that it is not evicted first.
    ///
    /// @param predecessor null when `key` is the first of its sequence
    /// @return whether both objects are resident and now linked
    boolean linkObject(Namespace namespace, byte[] key, byte @Nullable [] predecessor);

    /// Starts to load an object that is likely to be requested soon from disk into host memory.
    ///
    /// The object is loaded only if it promises more hits than what has to be evicted for it.
    ///
    /// @return whether it is being loaded now
    boolean prefetchObject(Namespace namespace, byte[] key);

    /// Pins a resident object without counting as a use. Returns null when it is not resident.
    @Nullable
    ObjectView holdObject(Namespace namespace, byte[] key);

    /// As [#acquire(BlockChain, int, Duration)], for another server that keeps a copy of what it gets: it counts as no
    /// look-up, so that the hit ratio is that of clients.
    BlockTable acquireCopy(BlockChain chain, int from, Duration timeout);

    /// Counts blocks that an engine took from the memory of its own device.
    ///
    /// @param blocks that no disk had to be read for
    /// @param alone of these, that the request did not get through its table, and so count as found here
    void countFromDevice(Namespace namespace, int blocks, int alone);

    /// Has the processor's caches read what the next look-ups of these objects need, for all of them at once: one by
    /// one each would wait for memory by itself. Changes nothing, and counts as no use.
    ///
    /// @param keys a few, in the order in which this thread will ask for them; not to be changed
    default void warmObjects(Namespace namespace, List<byte[]> keys) {}

    /// Returns the objects of a namespace by digest, including those whose keys are unknown.
    ObjectCatalog objects(Namespace namespace);

    /// Returns the memory of this store that other processes on the host may map, or null when it is not shared.
    @Nullable
    SharedMemory sharedMemory();

    /// Returns all host memory that holds this store's blocks, read-only, so that a device can pin it.
    ///
    /// Read it through tables and write it through writers alone. It ends with the store.
    MemorySegment hostMemory();

    /// Looks for an object on the disks, to read a part of it there.
    ///
    /// @return null when it is in host memory or on its way there, or nowhere
    @Nullable
    DiskBlock diskObject(Namespace namespace, byte[] key);
}
