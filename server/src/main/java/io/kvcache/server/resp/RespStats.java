package io.kvcache.server.resp;

import io.kvcache.server.quota.InFlight;
import java.util.concurrent.atomic.LongAdder;

/// What the front end counts over all its connections, and what these share.
final class RespStats {

    final LongAdder commands = new LongAdder();
    final LongAdder errors = new LongAdder();
    final LongAdder protocolErrors = new LongAdder();
    final LongAdder droppedAfterOk = new LongAdder();

    /// Heap for the arguments of requests that are not answered yet.
    final InFlight arguments;

    RespStats(InFlight arguments) {
        this.arguments = arguments;
    }
}
