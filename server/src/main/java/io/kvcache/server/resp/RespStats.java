package io.kvcache.server.resp;

import java.util.concurrent.atomic.LongAdder;

/// What the front end counts over all its connections.
final class RespStats {

    final LongAdder commands = new LongAdder();
    final LongAdder errors = new LongAdder();
    final LongAdder protocolErrors = new LongAdder();
    final LongAdder droppedAfterOk = new LongAdder();
}
