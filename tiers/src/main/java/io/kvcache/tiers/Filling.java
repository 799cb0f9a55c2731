package io.kvcache.tiers;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.PutReservation;
import io.kvcache.core.tree.RecordHandle;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Reserved room on its way to being sealed or abandoned: what block and object writers have in common.
///
/// Not safe for several threads at once, as no writer is.
final class Filling {

    private final HostTable.Source source;
    private final PutReservation reserved;
    private final Hold hold;
    private final SegmentScope scope;
    private boolean open;
    private @Nullable ChunkedCrc crc;

    /// Takes over a hold; gives it back at once when nothing is reserved.
    Filling(HostTable.Source source, Hold hold, PutReservation reserved) {
        this.source = source;
        this.hold = hold;
        this.reserved = reserved;
        open = reserved.outcome() == PutOutcome.RESERVED;
        scope = SegmentScope.open(source.checked() && open);
        if (!open) {
            source.holders().leave(hold);
        }
    }

    PutOutcome outcome() {
        return reserved.outcome();
    }

    int record() {
        return reserved.record();
    }

    HostStore store() {
        return source.store();
    }

    MemorySegment limit(MemorySegment slot) {
        return scope.limit(slot);
    }

    void requireOpen() {
        if (reserved.outcome() != PutOutcome.RESERVED) {
            throw new IllegalStateException("nothing is reserved: the outcome is " + reserved.outcome());
        }
        if (!open) {
            throw new IllegalStateException("the writer is sealed or closed");
        }
    }

    /// Fills `pieces` from `source`, and begins the sum with them on the way.
    void copy(MemorySegment from, List<MemorySegment> pieces) {
        ChunkedCrc own = new ChunkedCrc();
        long at = 0;
        for (MemorySegment piece : pieces) {
            own.copy(from, at, piece);
            at += piece.byteSize();
        }
        crc = own;
    }

    /// Adds bytes that are in their place to the sum, in order.
    void sum(MemorySegment bytes) {
        crc().update(bytes);
    }

    /// All is in its place and summed.
    SealOutcome seal() {
        return seal(crc().value());
    }

    /// Made when something is summed, which a store without disks leaves for later.
    private ChunkedCrc crc() {
        ChunkedCrc own = crc == null ? new ChunkedCrc() : crc;
        crc = own;
        return own;
    }

    /// All is in its place, and its sum is known.
    SealOutcome seal(int checksum) {
        requireOpen();
        open = false;
        try {
            scope.close();
            return reserved.replaces() && source.store().tierPort().hasDisks()
                    ? sealAgain(checksum)
                    : source.store().seal(reserved.record(), checksum);
        } finally {
            source.changed(reserved.record());
            source.holders().leave(hold);
        }
    }

    private SealOutcome sealAgain(int checksum) {
        HostStore store = source.store();
        long equal = store.pinEqual(reserved.record(), checksum);
        try {
            return store.seal(reserved.record(), checksum, equal);
        } finally {
            if (RecordHandle.isFound(equal)) {
                store.lookup().unpin(RecordHandle.record(equal));
            }
        }
    }

    void close() {
        if (open) {
            open = false;
            try {
                scope.close();
            } finally {
                source.store().abandon(reserved.record());
                source.changed(reserved.record());
                source.holders().leave(hold);
            }
        }
    }
}
