package io.kvcache.server.resp;

import io.kvcache.server.quota.ByteBudget;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/// What the front end counts over all its connections, and what these share.
final class RespStats {

    final LongAdder commands = new LongAdder();
    final LongAdder errors = new LongAdder();
    final LongAdder protocolErrors = new LongAdder();
    final LongAdder droppedAfterOk = new LongAdder();

    /// When SAVE ended well the last time, in seconds since the epoch; 0 for never.
    final AtomicLong savedSeconds = new AtomicLong();

    /// Heap for the arguments of requests that are not answered yet.
    final ByteBudget argumentMemory;

    /// As much of it as may wait for EXEC.
    final ByteBudget queuedMemory;

    RespStats(ByteBudget arguments) {
        this.argumentMemory = arguments;
        queuedMemory = new ByteBudget(arguments.limitBytes() / 2);
    }
}
