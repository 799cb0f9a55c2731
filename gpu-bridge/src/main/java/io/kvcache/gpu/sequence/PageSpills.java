package io.kvcache.gpu.sequence;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.tier.DevicePages;
import io.kvcache.gpu.tier.DevicePages.Page;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/// Puts sealed pages into the store: copies of the device's own, behind what has written the pages; a thread
/// computes checksums and seals.
///
/// A page is held until then, so that what is evicted from the device is in host memory, unless the store declined
/// it.
///
/// **Threads.** The driver's, but for the sealing.
final class PageSpills implements AutoCloseable {

    /// Copies on their way, each with room in host memory.
    private static final int MAX_COPIES = 32;

    private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

    private final LocalKvCache cache;
    private final DevicePages pages;
    private final PagedKvCache owner;
    private final DeviceStream toHost;
    private final Deque<Spill> waiting = new ArrayDeque<>();
    private final Deque<Copy> copies = new ArrayDeque<>();
    private final AtomicInteger sealing = new AtomicInteger();
    private final ExecutorService sealer = Executors.newSingleThreadExecutor(
            task -> Thread.ofPlatform().name("kvcache-page-sealer").daemon().unstarted(task));

    private record Spill(BlockChain chain, int index, Page page) {

        BlockKey key() {
            return chain.key(index);
        }
    }

    private record Copy(Spill spill, BlockWriter writer, DeviceEvent copied) {

        Page page() {
            return spill.page;
        }
    }

    PageSpills(LocalKvCache cache, DevicePages pages, PagedKvCache owner, DeviceStream toHost) {
        this.cache = cache;
        this.pages = pages;
        this.owner = owner;
        this.toHost = toHost;
    }

    /// A page was sealed, and what writes it is on the engine's stream.
    void add(BlockChain chain, int index, Page page) {
        pages.hold(page);
        waiting.add(new Spill(chain, index, page));
    }

    void poll() {
        while (!copies.isEmpty() && copies.getFirst().copied.isReached()) {
            Copy copy = copies.remove();
            owner.recycle(copy.copied);
            sealing.incrementAndGet();
            sealer.execute(() -> seal(copy));
        }
        while (!waiting.isEmpty() && copies.size() < MAX_COPIES) {
            begin(waiting.remove());
        }
    }

    private void begin(Spill spill) {
        if (!pages.isSealed(spill.page, spill.key())) {
            pages.release(spill.page); // it was dropped meanwhile
            return;
        }
        BlockWriter writer = cache.put(spill.chain, spill.index, 0, Duration.ZERO);
        if (writer.outcome() != PutOutcome.RESERVED) {
            writer.close();
            pages.release(spill.page);
            return;
        }
        try {
            DeviceEvent event = owner.event();
            owner.stream().record(event);
            toHost.waitFor(event);
            toHost.copyToHost(spill.page.span().address(), writer.segment());
            toHost.record(event);
            copies.add(new Copy(spill, writer, event));
        } catch (DeviceException refused) {
            throw owner.abandon(refused, () -> {
                writer.close();
                pages.release(spill.page);
            });
        }
    }

    private void seal(Copy copy) {
        try (BlockWriter writer = copy.writer) {
            int checksum = ChunkedCrc.of(writer.segment());
            if (pages.isSealed(copy.page(), copy.spill.key())) {
                pages.setChecksum(copy.page(), checksum);
                writer.seal(checksum);
            }
        } finally {
            pages.release(copy.page());
            sealing.decrementAndGet();
        }
    }

    /// Waits for what is being sealed, which takes a moment: afterwards nothing is put that was dropped before.
    void awaitSealed() {
        while (sealing.get() > 0) {
            LockSupport.parkNanos(this, PAUSE_NANOS);
        }
    }

    boolean isBusy() {
        return waiting() > 0;
    }

    int waiting() {
        return waiting.size() + copies.size() + sealing.get();
    }

    /// Gives up what is left; the device does nothing there any more, or is out.
    @Override
    public void close() {
        sealer.close();
        copies.forEach(copy -> {
            copy.writer.close();
            pages.release(copy.page());
        });
        waiting.forEach(spill -> pages.release(spill.page));
    }
}
