package io.kvcache.server.lm;

import java.util.concurrent.atomic.LongAdder;

/// What the front end counts over all its connections.
final class LmStats {

    final LongAdder requests = new LongAdder();
    final LongAdder protocolErrors = new LongAdder();
    final LongAdder alreadyStored = new LongAdder();
    final LongAdder droppedSilently = new LongAdder();
}
