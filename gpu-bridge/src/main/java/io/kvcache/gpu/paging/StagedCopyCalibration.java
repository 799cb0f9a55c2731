package io.kvcache.gpu.paging;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;

/// From which size on pieces between host memory and pages are as fast copied one by one, in a batch, as whole
/// blocks by way of a [StagingBuffer].
final class StagedCopyCalibration {

    private static final int PAGE = 4096;
    private static final int PAGES_PER_BLOCK = 32;
    private static final int BLOCKS = CopyThreshold.MEASURED_PIECES / PAGES_PER_BLOCK;

    private StagedCopyCalibration() {}

    /// Measures it: the smallest of 4, 8, … 64 KiB of which 128 scattered pieces are loaded at least as fast
    /// by copies, in the best of three; 128 KiB when none is. Takes 16 MiB of the device, and 8 MiB of host
    /// memory, meanwhile.
    static CopyThreshold measure(DeviceDriver driver, StagingBuffer room, LongSupplier nanos) {
        Deque<Runnable> taken = new ArrayDeque<>();
        Arena arena = Arena.ofShared();
        taken.push(arena::close);
        try {
            MemorySegment host =
                    arena.allocate((long) CopyThreshold.MEASURED_PIECES * CopyThreshold.MAX_PIECE_BYTES, PAGE);
            DeviceSpan pool = driver.allocate(2L * CopyThreshold.MEASURED_PIECES * CopyThreshold.MAX_PIECE_BYTES);
            taken.push(() -> driver.free(pool));
            driver.register(host);
            taken.push(() -> driver.unregister(host));
            DeviceStream stream = driver.openStream(Priority.HIGH);
            taken.push(stream::close);
            DeviceEvent event = driver.openEvent();
            taken.push(event::close);
            return isFaster(room, host, pool, stream, event, nanos);
        } finally {
            taken.forEach(Runnable::run); // each waits for what is on its way; when that has no end, all stays
        }
    }

    private static CopyThreshold isFaster(
            StagingBuffer room,
            MemorySegment host,
            DeviceSpan pool,
            DeviceStream stream,
            DeviceEvent event,
            LongSupplier nanos) {
        stream.fill(pool, (byte) 0);
        for (int bytes = CopyThreshold.MIN_PIECE_BYTES; bytes <= CopyThreshold.MAX_PIECE_BYTES; bytes *= 2) {
            PagedLayout layout =
                    PagedLayout.blockFirst(pool, 1, 1, 2 * CopyThreshold.MEASURED_PIECES, bytes, PAGES_PER_BLOCK);
            List<MemorySegment> blocks = new ArrayList<>();
            List<int[]> pages = new ArrayList<>();
            CopyBatch batch = CopyBatch.toDevice();
            for (int i = 0; i < BLOCKS; i++) {
                int first = i * PAGES_PER_BLOCK;
                MemorySegment block = host.asSlice(i * layout.blockBytes(), layout.blockBytes());
                int[] apart = IntStream.range(first, first + PAGES_PER_BLOCK)
                        .map(page -> 2 * page) // with gaps, so that no two become one
                        .toArray();
                blocks.add(block);
                pages.add(apart);
                new PageCopyPlanner(layout).addOnboard(block, apart, 0, batch);
            }
            long copying = CopyThreshold.bestTime(nanos, stream, event, () -> stream.copy(batch));
            long staged =
                    CopyThreshold.bestTime(nanos, stream, event, () -> room.load(stream, layout, blocks, pages, null));
            if (copying <= staged) {
                return new CopyThreshold(bytes);
            }
        }
        return new CopyThreshold(CopyThreshold.MAX_THRESHOLD_BYTES);
    }
}
