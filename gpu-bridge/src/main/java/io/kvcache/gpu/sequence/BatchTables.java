package io.kvcache.gpu.sequence;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// The block tables of a batch in one array on the device, in the form that paged-attention kernels take: `int32
/// [sequences][maxBlocks]`. Block `i` of sequence `s` lies at `base + table[s][i] * UNIT_BYTES`; what is behind the
/// blocks of a sequence is undefined.
///
/// **Ownership.** The caller closes it, once no kernel reads it, before the [PagedKvCache].
///
/// **Threads.** As of [PagedKvCache].
public final class BatchTables implements AutoCloseable {

    /// Bytes that a step of a table's number stands for.
    public static final int UNIT_BYTES = 4096;

    private final PagedKvCache owner;
    private final DeviceDriver driver;
    private final int maxSequences;
    private final int maxBlocks;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment rows;
    private final MemorySegment sent;
    private final DeviceSpan table;
    private boolean closed;

    BatchTables(PagedKvCache owner, DeviceDriver driver, int maxSequences, int maxBlocks) {
        if (maxSequences < 1 || maxBlocks < 1) {
            throw new IllegalArgumentException(
                    "tables of %s sequences with %s blocks; allowed: 1 and up".formatted(maxSequences, maxBlocks));
        }
        this.owner = owner;
        this.driver = driver;
        this.maxSequences = maxSequences;
        this.maxBlocks = maxBlocks;
        long bytes = (long) maxSequences * rowBytes();
        try {
            table = driver.allocate(bytes);
        } catch (DeviceException refused) {
            arena.close();
            throw refused;
        }
        rows = arena.allocate(bytes, 64);
        sent = arena.allocate(bytes, 64);
        sent.fill((byte) 0xFF);
    }

    private long rowBytes() {
        return 4L * maxBlocks;
    }

    /// Returns the array on the device.
    public DeviceSpan span() {
        return table;
    }

    /// Returns where number 0 of a table lies.
    public DeviceAddress base() {
        return owner.pages().allocation().address();
    }

    /// Writes the tables of a batch behind what the stream was given: only those that have changed travel.
    ///
    /// @param batch at most as many as there is room for, each with at most `maxBlocks` pages
    /// @throws IllegalArgumentException for more
    public void update(List<Sequence> batch) {
        require("sequences", batch.size(), maxSequences);
        CopyBatch changed = CopyBatch.toDevice();
        Arena copies = Arena.ofShared();
        for (int number = 0; number < batch.size(); number++) {
            Sequence sequence = batch.get(number);
            require("pages of a sequence", sequence.pages(), maxBlocks);
            MemorySegment row = rows.asSlice(number * rowBytes(), 4L * sequence.pages());
            for (int page = 0; page < sequence.pages(); page++) {
                row.setAtIndex(JAVA_INT, page, number(sequence.page(page)));
            }
            MemorySegment known = sent.asSlice(number * rowBytes(), row.byteSize());
            long first = row.mismatch(known);
            if (first >= 0) {
                long from = first / 4 * 4;
                MemorySegment copy = copies.allocate(row.byteSize() - from, 16).copyFrom(row.asSlice(from));
                changed.add(copy, table.address().plus(number * rowBytes() + from));
                known.copyFrom(row);
            }
        }
        if (changed.pieces() == 0) {
            copies.close();
            return;
        }
        try {
            owner.stream().copy(changed);
            owner.onStream(copies::close);
        } catch (DeviceException refused) {
            throw owner.abandon(refused, copies::close);
        }
    }

    private int number(DeviceSpan page) {
        return Math.toIntExact((page.address().value() - base().value()) / UNIT_BYTES);
    }

    private static void require(String what, int value, int most) {
        if (value > most) {
            throw new IllegalArgumentException("%s %s; the tables have room for %s".formatted(value, what, most));
        }
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            driver.free(table);
            arena.close();
        }
    }
}
