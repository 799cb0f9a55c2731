package io.kvcache.gpu.sequence;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import java.lang.foreign.Arena;
import java.util.Arrays;
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

    private static final long MAX_BYTES = 1L << 30;

    private final PagedKvCache owner;
    private final DeviceDriver driver;
    private final int maxSequences;
    private final int maxBlocks;
    private final int[][] sent;
    private final DeviceSpan table;
    private boolean closed;

    BatchTables(PagedKvCache owner, DeviceDriver driver, int maxSequences, int maxBlocks) {
        if (maxSequences < 1 || maxBlocks < 1 || 4L * maxSequences * maxBlocks > MAX_BYTES) {
            throw new IllegalArgumentException(
                    "tables of %s sequences with %s blocks; allowed: 1 and up, %s bytes in all"
                            .formatted(maxSequences, maxBlocks, MAX_BYTES));
        }
        this.owner = owner;
        this.driver = driver;
        this.maxSequences = maxSequences;
        this.maxBlocks = maxBlocks;
        sent = new int[maxSequences][0];
        table = driver.allocate(maxSequences * rowBytes());
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

    /// Writes the tables of a batch behind what the stream was given: only what has changed travels.
    ///
    /// @param batch sequences of the paged cache that have their pages, at most as many as there is room for, each
    ///     with at most `maxBlocks`
    /// @throws IllegalArgumentException for others; nothing is written then
    public void update(List<Sequence> batch) {
        owner.requireOpen();
        require("sequences", batch.size(), maxSequences);
        for (Sequence sequence : batch) {
            sequence.requireOf(owner);
            require("pages of a sequence", sequence.pages(), maxBlocks);
        }
        CopyBatch changed = CopyBatch.toDevice();
        Arena copies = Arena.ofShared();
        for (int number = 0; number < batch.size(); number++) {
            Sequence sequence = batch.get(number);
            int[] row = new int[sequence.pages()];
            Arrays.setAll(row, page -> number(sequence.page(page)));
            int same = Arrays.mismatch(row, sent[number]);
            if (same >= 0 && same < row.length) {
                changed.add(
                        copies.allocateFrom(JAVA_INT, Arrays.copyOfRange(row, same, row.length)),
                        table.address().plus(number * rowBytes() + 4L * same));
                sent[number] = row;
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
        }
    }
}
