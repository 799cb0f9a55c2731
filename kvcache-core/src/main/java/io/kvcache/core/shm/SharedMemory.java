package io.kvcache.core.shm;

import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.util.UUID;

/// The memory of a store whose slots and index other processes may map.
///
/// A mapping gives away all that is in it, so there is one for a trust domain: tenants that may read each
/// other.
///
/// **Threads.** Any.
public interface SharedMemory {

    /// Returns the files to map.
    SharedMemoryFiles files();

    /// What only a process that can read the files knows, see [io.kvcache.core.tree.IndexHeader#proof].
    UUID proof();

    /// The slots, where this process has them, for as long as the store is open.
    MemorySegment slots();

    /// Returns whether this tenant belongs to the domain. A caller that may speak for all tenants needs no check.
    boolean mayBeMappedBy(String tenant);

    /// The number that the records of a namespace's blocks carry.
    ///
    /// @throws IllegalArgumentException when it is not registered
    int namespaceId(Namespace namespace);

    /// A client has read a block without asking. One that is gone meanwhile, or never was, is passed over.
    ///
    /// @param handle of its record, see [io.kvcache.core.tree.RecordHandle]
    void recordAccess(long handle);

    /// Returns the offset of memory that a table or view shows, in bytes from the start of the slots.
    ///
    /// @throws IllegalArgumentException when it is not memory of the store
    long offsetOf(MemorySegment shown);

    /// The most that one client gets to write into, in bytes; 0 when none gets anything.
    long maxStagingBytes();

    /// Makes memory for one client to write into.
    ///
    /// @param bytes that it wants; it gets no more than [#maxStagingBytes], in whole pages
    /// @throws IllegalArgumentException when that is less than one
    /// @throws IllegalStateException when all clients together have too much already, or there is too little
    ///     memory; names the sizes
    StagingArea createStagingArea(long bytes);

    /// Names the files in memory that processes on the same host map to read a store without asking it.
    ///
    /// @param directory absolute, mode 0700
    /// @param slots name of the file in it that blocks and objects lie in
    /// @param records name of the file in it that begins with a [io.kvcache.core.tree.IndexHeader], and goes on
    ///     with the index
    /// @param epoch of the store, as its header has it: tells these files from earlier ones of the same names
    public record SharedMemoryFiles(String directory, String slots, String records, long epoch) {}
}
