package io.kvcache.core.store;

import io.kvcache.core.PutOutcome;

/// The answer to a request for room.
///
/// @param outcome what became of it
/// @param record the record to fill and then seal or abandon; meaningless unless RESERVED
/// @param replaces whether an object of that key is here or on disk
public record Reserved(PutOutcome outcome, int record, boolean replaces) {

    static final Reserved PRESENT = new Reserved(PutOutcome.PRESENT, -1);
    static final Reserved BUSY = new Reserved(PutOutcome.BUSY, -1);
    static final Reserved FOREIGN = new Reserved(PutOutcome.FOREIGN, -1);
    static final Reserved NO_PARENT = new Reserved(PutOutcome.NO_PARENT, -1);
    static final Reserved NO_ROOM = new Reserved(PutOutcome.NO_ROOM, -1);

    /// One that replaces nothing.
    public Reserved(PutOutcome outcome, int record) {
        this(outcome, record, false);
    }
}
