package io.kvcache.transport.remote;

/// What the client's side of a remote cache has done, and what it holds.
///
/// @param connected whether there is a session now
/// @param sessions begun, the first included
/// @param failed requests without an answer, each a shorter prefix or a refusal
/// @param corrupt blocks and objects whose bytes did not have their checksum, and were not handed out
/// @param noMemory blocks, objects and writers for which there was no memory on this side
/// @param bytesIn of blocks and objects
/// @param bytesOut of blocks and objects
/// @param memoryUsed bytes of this side's memory that tables, views and writers hold
/// @param open tables, views and writers
/// @param sharedMemory whether the server's memory is read in place now
/// @param placed blocks that were leased where they lie
/// @param copied blocks that were copied without a message
/// @param missed blocks that were wanted so and not copied
/// @param torn copies that were thrown away, as their block went meanwhile; each is among the missed
/// @param told reads without a message that the server was told of afterwards
/// @param fetched blocks that were leased and read one-sided over a fabric
/// @param staged blocks and objects that were put through memory shared with the server
/// @param way by which the server is reached, or was last, and for `auto:host:port` why
public record RemoteStats(
        boolean connected,
        long sessions,
        long failed,
        long corrupt,
        long noMemory,
        long bytesIn,
        long bytesOut,
        long memoryUsed,
        int open,
        boolean sharedMemory,
        long placed,
        long copied,
        long missed,
        long torn,
        long told,
        long fetched,
        long staged,
        String way) {

    static RemoteStats of(Wiring wiring) {
        RemoteCounters counters = wiring.counters();
        return new RemoteStats(
                wiring.uplink().connected(),
                wiring.uplink().attachments(),
                counters.failed.sum(),
                counters.corrupt.sum(),
                counters.noMemory.sum(),
                counters.bytesIn.sum(),
                counters.bytesOut.sum(),
                wiring.memory().usedBytes(),
                wiring.open().get(),
                wiring.uplink().shares(),
                counters.placed.sum(),
                counters.oneSided.copied(),
                counters.oneSided.missed(),
                counters.oneSided.torn(),
                counters.oneSided.told(),
                counters.fetched.sum(),
                counters.staged.sum(),
                wiring.uplink().way());
    }
}
