package io.kvcache.core.store;

import io.kvcache.core.PutOutcome;

/// The answer to a request for room.
///
/// @param outcome what became of it
/// @param record the record to fill and then seal or abandon; meaningless unless RESERVED
/// @param replaces whether an object of that key is here or on disk
public record PutReservation(PutOutcome outcome, int record, boolean replaces) {

    static final PutReservation PRESENT = new PutReservation(PutOutcome.PRESENT, -1);
    static final PutReservation BUSY = new PutReservation(PutOutcome.BUSY, -1);
    static final PutReservation FOREIGN = new PutReservation(PutOutcome.FOREIGN, -1);
    static final PutReservation NO_PARENT = new PutReservation(PutOutcome.NO_PARENT, -1);
    static final PutReservation NO_ROOM = new PutReservation(PutOutcome.NO_ROOM, -1);

    /// One that replaces nothing.
    public PutReservation(PutOutcome outcome, int record) {
        this(outcome, record, false);
    }
}
