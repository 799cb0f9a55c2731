package io.kvcache.tiers;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.tiers.OpenHandles.OpenHandle;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Reserved room on its way to being sealed or abandoned: what block and object writers have in common.
///
/// Not safe for several threads at once, as no writer is.
final class SlotWriter {

    private final HostBlockTable.StoreContext storeContext;
    private final PutReservation putReservation;
    private final OpenHandle openHandle;
    private final @Nullable Arena scope;
    private boolean open;
    private @Nullable ChunkedCrc crc;

    /// Takes over a hold; gives it back at once when nothing is reserved.
    SlotWriter(HostBlockTable.StoreContext storeContext, OpenHandle openHandle, PutReservation putReservation) {
        this.storeContext = storeContext;
        this.openHandle = openHandle;
        this.putReservation = putReservation;
        open = putReservation.outcome() == PutOutcome.RESERVED;
        scope = open ? storeContext.openScope() : null;
        if (!open) {
            storeContext.openHandles().release(openHandle);
        }
    }

    PutOutcome outcome() {
        return putReservation.outcome();
    }

    int record() {
        return putReservation.record();
    }

    HostStore store() {
        return storeContext.store();
    }

    MemorySegment bind(MemorySegment slot) {
        return HostBlockTable.StoreContext.bind(scope, slot);
    }

    void requireOpen() {
        if (putReservation.outcome() != PutOutcome.RESERVED) {
            throw new IllegalStateException("nothing is reserved: the outcome is " + putReservation.outcome());
        }
        if (!open) {
            throw new IllegalStateException("the writer is sealed or closed");
        }
    }

    /// Fills `pieces` from `source`, and begins the sum with them on the way.
    void copyIn(MemorySegment from, List<MemorySegment> pieces) {
        ChunkedCrc own = new ChunkedCrc();
        long at = 0;
        for (MemorySegment piece : pieces) {
            own.copy(from, at, piece);
            at += piece.byteSize();
        }
        crc = own;
    }

    /// Adds bytes that are in their place to the sum, in order.
    void addToChecksum(MemorySegment bytes) {
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
            HostBlockTable.StoreContext.close(scope);
            return putReservation.replaces() && storeContext.store().tierPort().hasDisks()
                    ? retrySeal(checksum)
                    : storeContext.store().seal(putReservation.record(), checksum);
        } finally {
            storeContext.notifyChanged(putReservation.record());
            storeContext.openHandles().release(openHandle);
        }
    }

    private SealOutcome retrySeal(int checksum) {
        HostStore store = storeContext.store();
        long equal = store.pinEqual(putReservation.record(), checksum);
        try {
            return store.seal(putReservation.record(), checksum, equal);
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
                HostBlockTable.StoreContext.close(scope);
            } finally {
                storeContext.store().abandon(putReservation.record());
                storeContext.notifyChanged(putReservation.record());
                storeContext.openHandles().release(openHandle);
            }
        }
    }
}
