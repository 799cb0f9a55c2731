package io.kvcache.transport.remote;

import io.kvcache.core.BlockTable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.AtomicInteger;

/// What tables, views and writers of one remote cache share.
///
/// @param openHandles tables, views and writers
/// @param fetchExecutor reads what arrives later
record RemoteCacheContext(
        SessionPool sessions,
        RemoteOptions options,
        ReceiveBuffers buffers,
        RemoteStats.Counters counters,
        AtomicInteger openHandles,
        ExecutorService fetchExecutor) {

    /// The table of a question that was not answered.
    BlockTable emptyTable(int firstBlock) {
        openHandles.incrementAndGet();
        return BlockTable.empty(firstBlock, openHandles::decrementAndGet);
    }
}
