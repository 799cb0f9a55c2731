package io.kvcache.transport.client;

import io.kvcache.transport.shm.SharedStore.OneSidedCounters;
import java.util.concurrent.atomic.LongAdder;

/// Statistics of a client: what it has done and what it holds.
///
/// @param connected whether there is a session now
/// @param sessions begun, the first included
/// @param failed requests without an answer, each a shorter prefix or a refusal
/// @param corrupt blocks and objects whose bytes did not have their checksum, and were not handed out
/// @param outOfMemory blocks, objects and writers for which there was no memory on this side
/// @param bytesIn of blocks and objects, as they are when decoded
/// @param bytesSaved of these, that coding has kept off the network
/// @param bytesOut of blocks and objects
/// @param memoryUsed bytes of this side's memory that tables, views and writers hold
/// @param open tables, views and writers
/// @param sharedMemory whether the server's memory is read in place now
/// @param mapped blocks that were leased where they lie
/// @param copied blocks that were copied without a message
/// @param missed blocks that were wanted so and not copied
/// @param torn copies that were thrown away, as their block went meanwhile; each is among the missed
/// @param reported reads without a message that were reported to the server afterwards
/// @param fetched blocks that were leased and read one-sided over a fabric
/// @param staged blocks and objects that were put through memory shared with the server
public record RemoteStats(
        boolean connected,
        long sessions,
        long failed,
        long corrupt,
        long outOfMemory,
        long bytesIn,
        long bytesSaved,
        long bytesOut,
        long memoryUsed,
        int open,
        boolean sharedMemory,
        long mapped,
        long copied,
        long missed,
        long torn,
        long reported,
        long fetched,
        long staged) {

    static RemoteStats of(RemoteContext client) {
        Counters counters = client.counters();
        return new RemoteStats(
                client.keeper().isConnected(),
                client.keeper().sessionCount(),
                counters.failed.sum(),
                counters.corrupt.sum(),
                counters.outOfMemory.sum(),
                counters.bytesIn.sum(),
                counters.bytesSaved.sum(),
                counters.bytesOut.sum(),
                client.buffers().usedBytes(),
                client.openHandles().get(),
                client.keeper().isMemoryMapped(),
                counters.mapped.sum(),
                counters.oneSided.copied(),
                counters.oneSided.missed(),
                counters.oneSided.torn(),
                counters.oneSided.reported(),
                counters.fetched.sum(),
                counters.staged.sum());
    }

    /// Counts what [RemoteStats] tells. Any thread.
    static final class Counters {

        final LongAdder failed = new LongAdder();
        final LongAdder corrupt = new LongAdder();
        final LongAdder outOfMemory = new LongAdder();
        final LongAdder bytesIn = new LongAdder();
        final LongAdder bytesSaved = new LongAdder();
        final LongAdder bytesOut = new LongAdder();
        final LongAdder mapped = new LongAdder();
        final LongAdder fetched = new LongAdder();
        final LongAdder staged = new LongAdder();
        final OneSidedCounters oneSided = new OneSidedCounters();
    }
}
