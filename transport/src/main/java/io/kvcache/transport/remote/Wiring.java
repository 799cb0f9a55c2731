package io.kvcache.transport.remote;

import io.kvcache.core.BlockTable;
import io.kvcache.core.EmptyBlockTable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.AtomicInteger;

/// What tables, views and writers of one remote cache share.
///
/// @param open tables, views and writers
/// @param fetching reads what arrives later
record Wiring(
        Uplink uplink,
        RemoteOptions options,
        ArrivalMemory memory,
        RemoteCounters counters,
        AtomicInteger open,
        ExecutorService fetching) {

    /// The table of a question that was not answered.
    BlockTable miss(int firstBlock) {
        open.incrementAndGet();
        return new EmptyBlockTable(firstBlock, open::decrementAndGet);
    }
}
