package io.kvcache.transport.remote;

import io.kvcache.core.Match;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.transport.shm.Copied;
import io.kvcache.transport.shm.SharedStore;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Answers from the server's memory, without a message. What cannot be answered so is for the caller to
/// ask.
final class InPlace {

    private static final int UNSURE = -1;

    private final Wiring wiring;

    InPlace(Wiring wiring) {
        this.wiring = wiring;
    }

    /// What of a chain is there, or null when that has to be asked.
    @Nullable
    Match match(BlockChain chain) {
        Attachment attachment = attachment();
        SharedStore store = attachment == null ? null : attachment.shared();
        Integer number = attachment == null ? null : attachment.inRecords(chain.namespace());
        if (store == null || number == null || !store.retain()) {
            return null;
        }
        try {
            SharedStore.Wanted wanted = new SharedStore.Wanted(chain, number);
            int host = store.resident(wanted, chain.length());
            int known = host < 0 ? UNSURE : store.known(wanted, host);
            return known < 0 ? null : known == 0 ? Match.NOTHING : new Match(0, host, known - host);
        } finally {
            store.release();
        }
    }

    /// Copies leading blocks from block `from` on; -1 when that has to be asked for.
    int copy(BlockChain chain, int from, List<MemorySegment> into) {
        Attachment attachment = attachment();
        SharedStore store = attachment == null ? null : attachment.shared();
        Integer number = attachment == null ? null : attachment.inRecords(chain.namespace());
        if (attachment == null || store == null || number == null) {
            return UNSURE;
        }
        if (chain.namespace().parts().isEmpty() || !store.retain()) {
            return UNSURE;
        }
        try {
            long blockBytes = chain.namespace().parts().getFirst().bytes();
            SharedStore.Wanted wanted = new SharedStore.Wanted(chain, number);
            Copied copied = store.copy(wanted, from, blockBytes, into);
            if (RecordHandle.isFound(copied.last())) {
                attachment.touch(copied.last());
            }
            return copied.blocks();
        } finally {
            store.release();
        }
    }

    private @Nullable Attachment attachment() {
        try {
            return wiring.uplink().attached();
        } catch (CallFailed away) {
            return null;
        }
    }
}
