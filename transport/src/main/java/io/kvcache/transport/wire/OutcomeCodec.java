package io.kvcache.transport.wire;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;

/// The numbers of the outcomes of putting.
public final class OutcomeCodec {

    private OutcomeCodec() {}

    public static int code(PutOutcome outcome) {
        return switch (outcome) {
            case RESERVED -> 0;
            case PRESENT -> 1;
            case BUSY, FOREIGN -> 2;
            case NO_PARENT -> 3;
            case NO_ROOM, DECLINED -> 4;
        };
    }

    /// Returns the detail that follows the code. Older clients ignore it.
    public static int cause(PutOutcome outcome) {
        return outcome == PutOutcome.FOREIGN || outcome == PutOutcome.DECLINED ? 1 : 0;
    }

    /// The outcome of a code.
    ///
    /// @param cause what [#cause] tells; 0 of an older server
    public static PutOutcome put(int code, int cause) throws ProtocolException {
        return switch (code) {
            case 0 -> PutOutcome.RESERVED;
            case 1 -> PutOutcome.PRESENT;
            case 2 -> cause == 1 ? PutOutcome.FOREIGN : PutOutcome.BUSY;
            case 3 -> PutOutcome.NO_PARENT;
            case 4 -> cause == 1 ? PutOutcome.DECLINED : PutOutcome.NO_ROOM;
            default -> throw new ProtocolException("put outcome = " + code + "; allowed: 0 to 4");
        };
    }

    public static int code(SealOutcome outcome) {
        return switch (outcome) {
            case SEALED -> 0;
            case PENDING -> 1;
            case DROPPED -> 2;
        };
    }

    public static SealOutcome seal(int code) throws ProtocolException {
        return switch (code) {
            case 0 -> SealOutcome.SEALED;
            case 1 -> SealOutcome.PENDING;
            case 2 -> SealOutcome.DROPPED;
            default -> throw new ProtocolException("seal outcome = " + code + "; allowed: 0 to 2");
        };
    }
}
