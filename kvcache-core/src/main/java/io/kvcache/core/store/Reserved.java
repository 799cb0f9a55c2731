package io.kvcache.core.store;

import io.kvcache.core.PutOutcome;

/// The answer to a request for room.
///
/// @param outcome what became of it
/// @param record the record to fill and then seal or abandon; meaningless unless RESERVED
public record Reserved(PutOutcome outcome, int record) {

    static final Reserved PRESENT = new Reserved(PutOutcome.PRESENT, -1);
    static final Reserved BUSY = new Reserved(PutOutcome.BUSY, -1);
    static final Reserved NO_PARENT = new Reserved(PutOutcome.NO_PARENT, -1);
    static final Reserved NO_ROOM = new Reserved(PutOutcome.NO_ROOM, -1);
}
