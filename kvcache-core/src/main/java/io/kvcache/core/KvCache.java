package io.kvcache.core;

import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/// A store of KV blocks and opaque objects, embedded in this process or served by another one.
///
/// A prompt's tokens become a [BlockChain]; [#match] says how many of its leading blocks the store
/// has, [#acquire] pins them, [#put] adds those that were computed. Every failure shortens the
/// prefix: a get answers "the first n blocks are here", and n may be 0. What is returned is byte
/// for byte what was put.
///
/// A namespace is registered before it is used. Chains and object keys of an unregistered namespace
/// are refused by `IllegalArgumentException`, as are a wrong index, part, size or key: these are
/// the caller's bugs. A full store, a block that another writer is at, a deadline are outcomes,
/// answered by values.
///
/// **Threads.** Safe for any number of threads. Only methods that take a time-out may wait, and no longer than
/// that.
public interface KvCache extends AutoCloseable {

    /// Waits not at all.
    long NO_WAIT = 0;

    /// Longest object key.
    int MAX_OBJECT_KEY_BYTES = 4096;

    /// Largest object.
    long MAX_OBJECT_BYTES = 256L << 20;

    /// Makes a namespace usable; registering it again is harmless.
    ///
    /// @throws IllegalArgumentException when a namespace that differs in nothing but its parts is registered
    ///     already (the message shows both shapes), when a block does not fit the store, or when there are
    /// too many
    ///     namespaces
    void register(Namespace namespace);

    /// How many leading blocks of the chain are here, and in which tiers. Moves and pins nothing.
    Match match(BlockChain chain);

    /// How much of a chain is here, without what is computed sooner than brought from a slower
    /// tier, as far as the store was told what computing takes: what [#acquire] with this time-out
    /// would bring.
    ///
    /// @param timeoutNanos how long the blocks may take to arrive
    default Match match(BlockChain chain, long timeoutNanos) {
        return match(chain);
    }

    /// Pins the leading blocks that are here, from block `from` on, and returns at once.
    ///
    /// Blocks in slower tiers go on arriving in chain order until the time-out; the table may end
    /// early. Close the table to give the blocks free.
    ///
    /// @param from first block wanted, `0 <= from <= chain.length()`
    /// @param timeoutNanos how long blocks may go on arriving, from now; 0 takes what is resident
    BlockTable acquire(BlockChain chain, int from, long timeoutNanos);

    /// Pins all leading blocks that are resident.
    default BlockTable acquire(BlockChain chain) {
        return acquire(chain, 0, NO_WAIT);
    }

    /// Reserves room for one block of the chain.
    ///
    /// @param index block of the chain, `0 <= index < chain.length()`; the block before it must be here or be
    ///     being
    ///     written
    /// @param part number of the block's part, `0 <= part <` parts of the namespace
    /// @param timeoutNanos how long to wait for room while every block is pinned; an interrupt ends the wait
    /// @return a writer whose [BlockWriter#outcome()] says whether there is anything to write; close it in every
    ///     case
    BlockWriter put(BlockChain chain, int index, int part, long timeoutNanos);

    /// Stores a run of blocks by copying them, and stops at the first that is refused.
    ///
    /// @param from block of the chain that `blocks.get(0)` is
    /// @param blocks each of exactly the block's size, native or heap memory
    PutSummary putAll(BlockChain chain, int from, List<MemorySegment> blocks, long timeoutNanos);

    /// Copies a run of blocks that are resident, and stops at the first that is not. Pins nothing
    /// afterwards.
    ///
    /// @param from block of the chain that goes to `into.get(0)`
    /// @param into native or heap memory, each at least of the block's size; what is beyond the blocks that
    ///     were copied is undefined
    /// @return blocks copied
    /// @throws IndexOutOfBoundsException when a block does not fit where it should go
    default int getAll(BlockChain chain, int from, List<MemorySegment> into) {
        try (BlockTable table = acquire(chain.prefix(Math.min(chain.length(), from + into.size())), from, NO_WAIT)) {
            int blocks = table.readyBlocks();
            for (int i = 0; i < blocks; i++) {
                table.copyTo(from + i, into.get(i));
            }
            return table.isValid() ? blocks : 0;
        }
    }

    /// Forgets block `from` of the chain and everything below it, in every tier. Pinned blocks are
    /// no longer found at once, and freed when their last pin goes.
    ///
    /// @return blocks forgotten
    int drop(BlockChain chain, int from);

    /// Forgets all blocks and objects of a namespace; it stays registered.
    ///
    /// @return blocks and objects forgotten
    long drop(Namespace namespace);

    /// Tells the store what only the caller knows. A wrong hint costs hits, never correctness.
    ///
    /// @return whether the hint was taken; a pin over its quota is not
    boolean hint(Hint hint);

    /// Reserves room for an opaque object. An object that is there already stays until the new one is sealed. Several
    /// writers may fill one key at a time, each in room of its own; the value that is sealed last stays.
    ///
    /// @param key 1 to 4,096 bytes
    /// @param bytes 1 to 256 MiB
    /// @return a writer whose [ObjectWriter#outcome()] says whether there is anything to write; close it in every
    ///     case
    ObjectWriter putObject(Namespace namespace, byte[] key, long bytes, long timeoutNanos);

    /// Reserves room for an opaque object that is read after another.
    ///
    /// @param after the key of the object that its readers take before it, which is not evicted earlier
    ///     while both are
    ///     resident; null for the first. A wrong one costs hits, never correctness
    /// @return as [#putObject(Namespace, byte[], long, long)]
    default ObjectWriter putObject(
            Namespace namespace, byte[] key, byte @Nullable [] after, long bytes, long timeoutNanos) {
        return putObject(namespace, key, bytes, timeoutNanos);
    }

    /// Says of an object that is resident which one its readers take before it, as a put may.
    ///
    /// @param after null when it is the first
    /// @return whether both are resident and it is so now
    default boolean linkObject(Namespace namespace, byte[] key, byte @Nullable [] after) {
        return false;
    }

    /// Says of an object that somebody is likely to ask for it soon: one that is on disk alone may
    /// be brought into host memory for that, if it promises more than what has to go.
    ///
    /// @return whether it is on its way now
    default boolean prefetchObject(Namespace namespace, byte[] key) {
        return false;
    }

    /// Tells the store what only the caller knows of objects. A wrong hint costs hits, never correctness.
    ///
    /// @param keys in the order in which they are read; those that are not here are passed over
    /// @return of how many objects the hint was taken
    default int hintObjects(Namespace namespace, List<byte[]> keys, ObjectHint hint) {
        return 0;
    }

    /// Stores an object by copying it.
    ///
    /// @param value 1 byte to 256 MiB, native or heap memory
    /// @param timeoutNanos how long to wait for room
    /// @return whether it is stored
    default boolean storeObject(Namespace namespace, byte[] key, MemorySegment value, long timeoutNanos) {
        try (ObjectWriter writer = putObject(namespace, key, value.byteSize(), timeoutNanos)) {
            if (writer.outcome() != PutOutcome.RESERVED) {
                return false;
            }
            writer.copyFrom(value);
            return writer.seal() != SealOutcome.DROPPED;
        }
    }

    /// Pins an object, or answers null when it is not resident. Close the view to give it free.
    @Nullable
    ObjectView getObject(Namespace namespace, byte[] key);

    /// Pins an object that is resident without using it: to no policy it is worth more for that.
    default @Nullable ObjectView holdObject(Namespace namespace, byte[] key) {
        return getObject(namespace, key);
    }

    /// Pins an object, or answers null when it is not here, waiting while it arrives from a slower tier.
    ///
    /// @param timeoutNanos the longest wait; 0 takes what is resident
    default @Nullable ObjectView getObject(Namespace namespace, byte[] key, long timeoutNanos) {
        return getObject(namespace, key);
    }

    /// Pins an object, waiting for it without a thread: completes on `executor` once it is here, or
    /// with null when it is not known, does not arrive in time, or cannot be brought in.
    ///
    /// **Ownership.** Whoever is handed the view closes it.
    ///
    /// @param timeoutNanos how long it may take to arrive
    default CompletionStage<@Nullable ObjectView> fetchObject(
            Namespace namespace, byte[] key, long timeoutNanos, Executor executor) {
        return CompletableFuture.supplyAsync(() -> getObject(namespace, key), executor);
    }

    /// Whether an object is here, in any tier. Pins and touches nothing.
    boolean containsObject(Namespace namespace, byte[] key);

    /// Forgets an object.
    ///
    /// @return whether it was here
    boolean dropObject(Namespace namespace, byte[] key);

    /// The objects of a namespace by digest, also those whose keys nobody here knows.
    default ObjectCatalog objects(Namespace namespace) {
        return ObjectCatalog.EMPTY;
    }

    /// Makes durable what was sealed and dropped before: it survives a crash from then on, until it is evicted,
    /// replaced or dropped. Without a flush, a crash may lose what was sealed and bring back what was dropped.
    ///
    /// @param timeoutNanos the longest wait; an interrupt ends it
    /// @return whether all of it is durable; false of a store that keeps nothing on disk
    default boolean flush(long timeoutNanos) {
        return false;
    }

    /// The memory of this store that other processes on the host may map; null of one that keeps it to
    /// itself.
    default @Nullable SharedMemory sharedMemory() {
        return null;
    }

    /// All the host memory that this store's blocks lie in, for who has a device fix it in place: it is
    /// read by tables and written by writers alone, and ends with the store. Null of a store that has none
    /// in this process.
    default @Nullable MemorySegment hostMemory() {
        return null;
    }

    /// What the store holds and has done, at one moment.
    CacheStats stats();

    /// What was stored and removed, in order.
    EventStream events();

    /// Gives the memory back, once the open tables are closed or a bounded time has passed.
    ///
    /// @throws IllegalStateException when closed twice; in strict mode, when tables were still open
    @Override
    void close();
}
