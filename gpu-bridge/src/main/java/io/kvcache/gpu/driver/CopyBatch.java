package io.kvcache.gpu.driver;

import io.kvcache.gpu.driver.CopyBatch.CopyDirection;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/// Pieces that are to be copied together.
///
/// Drivers take half a microsecond and more for each piece and do not merge neighbours themselves, so
/// pieces that lie beside each other on both sides become one run, in whatever order they were added; and
/// a run is cut where the registration of its host memory ends, and where another allocation of the device
/// begins, since one copy may not cross that.
///
/// **Threads.** One at a time.
public final class CopyBatch {

    private final CopyDirection direction;
    private final List<CopyPiece> pieces = new ArrayList<>();
    private boolean ordered = true;

    /// @param device the place on the device; the target where both are
    /// @param other the place in host memory, or the source where both are on the device
    private record CopyPiece(long device, long other, long bytes) {

        boolean continues(CopyPiece before) {
            return before.device + before.bytes == device && before.other + before.bytes == other;
        }

        CopyPiece mergeWith(CopyPiece next) {
            return new CopyPiece(device, other, bytes + next.bytes);
        }
    }

    private CopyBatch(CopyDirection direction) {
        this.direction = direction;
    }

    /// Pieces for a device.
    public static CopyBatch toDevice() {
        return new CopyBatch(CopyDirection.TO_DEVICE);
    }

    /// Pieces for host memory.
    public static CopyBatch toHost() {
        return new CopyBatch(CopyDirection.TO_HOST);
    }

    /// Pieces from one place of a device to another.
    public static CopyBatch within() {
        return new CopyBatch(CopyDirection.WITHIN);
    }

    /// Adds a piece between host memory and the device, in the direction of the batch.
    ///
    /// @throws IllegalArgumentException for memory that a device cannot copy, see [PinnedHostRanges]
    public void add(MemorySegment host, DeviceAddress device) {
        switch (direction) {
            case TO_DEVICE -> PinnedHostRanges.requireSource(host);
            case TO_HOST -> PinnedHostRanges.requireTarget(host);
            case WITHIN -> throw new IllegalArgumentException("this batch copies within a device");
        }
        add(new CopyPiece(device.value(), host.address(), host.byteSize()));
    }

    /// Adds a piece within the device.
    public void add(DeviceAddress from, DeviceAddress to, long bytes) {
        if (direction != CopyDirection.WITHIN || bytes < 1) {
            throw new IllegalArgumentException(
                    "a piece of " + bytes + " bytes within a device, in a batch " + direction);
        }
        add(new CopyPiece(to.value(), from.value(), bytes));
    }

    private void add(CopyPiece piece) {
        ordered = ordered && (pieces.isEmpty() || pieces.getLast().device <= piece.device);
        pieces.add(piece);
    }

    /// Pieces in it.
    public int pieces() {
        return pieces.size();
    }

    /// Bytes in it.
    public long bytes() {
        return pieces.stream().mapToLong(CopyPiece::bytes).sum();
    }

    /// Forgets all pieces.
    public void clear() {
        pieces.clear();
        ordered = true;
    }

    /// Refuses pieces that overlap where they go, as [#toRanges] does.
    public void requireNoOverlap() {
        CopyRanges unused = toRanges(new PinnedHostRanges(), new AllocationTable());
        assert unused.count() <= pieces.size() : "more runs than pieces";
    }

    /// The fewest copies that do it.
    ///
    /// @throws IllegalArgumentException when pieces overlap on the device, since copies of a batch have
    ///     no order
    public CopyRanges toRanges(PinnedHostRanges registered, AllocationTable slabs) {
        if (!ordered) {
            pieces.sort(Comparator.comparingLong(CopyPiece::device));
            ordered = true;
        }
        CopyRanges runs = new CopyRanges(direction);
        CopyPiece run = null;
        for (CopyPiece piece : pieces) {
            if (run != null && piece.continues(run) && !startsNewRange(piece, slabs)) {
                run = run.mergeWith(piece);
                continue;
            }
            if (run != null) {
                requireNoOverlap(run, piece);
                cut(run, registered, runs);
            }
            run = piece;
        }
        if (run != null) {
            cut(run, registered, runs);
        }
        return runs;
    }

    private boolean startsNewRange(CopyPiece piece, AllocationTable slabs) {
        return slabs.isAllocationStart(piece.device)
                || (direction == CopyDirection.WITHIN && slabs.isAllocationStart(piece.other));
    }

    private void requireNoOverlap(CopyPiece before, CopyPiece piece) {
        if (direction != CopyDirection.TO_HOST && before.device + before.bytes > piece.device) {
            throw new IllegalArgumentException(
                    String.format(Locale.ROOT, "two pieces of a batch write to the same place, 0x%x", piece.device));
        }
    }

    private void cut(CopyPiece run, PinnedHostRanges registered, CopyRanges runs) {
        for (long done = 0; done < run.bytes; ) {
            long host = run.other + done;
            long left = run.bytes - done;
            long length =
                    direction == CopyDirection.WITHIN ? left : Math.min(left, registered.nextBoundary(host) - host);
            switch (direction) {
                case TO_HOST -> runs.add(run.device + done, host, length);
                case TO_DEVICE, WITHIN -> runs.add(host, run.device + done, length);
            }
            done += length;
        }
    }

    /// Direction of a [CopyBatch].
    public enum CopyDirection {
        /// From host memory to the device.
        TO_DEVICE,
        /// From the device to host memory.
        TO_HOST,
        /// From the device to itself.
        WITHIN
    }

    /// Copies as a driver is asked for them: from, to and length of each.
    public static final class CopyRanges {

        private final CopyDirection direction;
        private long[] from = new long[16];
        private long[] to = new long[16];
        private long[] bytes = new long[16];
        private int count;

        CopyRanges(CopyDirection direction) {
            this.direction = direction;
        }

        void add(long source, long target, long length) {
            if (count == from.length) {
                from = Arrays.copyOf(from, 2 * count);
                to = Arrays.copyOf(to, 2 * count);
                bytes = Arrays.copyOf(bytes, 2 * count);
            }
            from[count] = source;
            to[count] = target;
            bytes[count++] = length;
        }

        /// Returns the direction of the copies.
        public CopyDirection direction() {
            return direction;
        }

        /// How many copies.
        public int count() {
            return count;
        }

        /// Address of the first byte that is read.
        public long from(int index) {
            return from[index];
        }

        /// Address of the first byte that is written.
        public long to(int index) {
            return to[index];
        }

        /// Bytes of one copy.
        public long bytes(int index) {
            return bytes[index];
        }
    }
}
