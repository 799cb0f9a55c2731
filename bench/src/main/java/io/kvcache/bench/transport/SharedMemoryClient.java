package io.kvcache.bench.transport;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.remote.RemoteKvCache;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/// Reads blocks of a server on this host out of its memory.
final class SharedMemoryClient implements TransferClient {

    private static final long IDLE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final RemoteKvCache cache;
    private final SharedMemoryAccess use;
    private final List<BlockChain> chains;

    /// @param cache with the server's memory mapped; its caller's
    SharedMemoryClient(RemoteKvCache cache, SharedMemoryAccess use, int bytes) {
        this.cache = cache;
        this.use = use;
        cache.register(RemoteTransferClient.space(bytes));
        chains = IntStream.range(0, RemoteTransferClient.blocks(bytes))
                .mapToObj(seed -> RemoteTransferClient.chain(bytes, seed))
                .toList();
    }

    @Override
    public void beforeTransfer() {
        if (use == SharedMemoryAccess.VIEW_IDLE) {
            LockSupport.parkNanos(IDLE_NANOS);
        }
    }

    @Override
    public boolean transfer(TransferSpec transferSpec, long number) {
        BlockChain chain = chains.get((int) (number * 7919 & (chains.size() - 1)));
        return switch (use) {
            case COPY -> copy(chain, transferSpec.bytes());
            case VIEW, VIEW_IDLE -> view(chain);
        };
    }

    private boolean copy(BlockChain chain, int bytes) {
        CopyTargetRing copyTargets = CopyTargetRing.borrow();
        int copied = cache.getAll(chain, 0, List.of(copyTargets.nextSlice(bytes)));
        copyTargets.giveBack();
        return copied == 1;
    }

    private boolean view(BlockChain chain) {
        try (BlockTable table = cache.acquire(chain)) {
            return table.readyBlocks() == 1 && table.segment(0).get(JAVA_BYTE, 0) == 0 && table.isValid();
        }
    }

    @Override
    public void close() {
        // The cache is its caller's.
    }
}
