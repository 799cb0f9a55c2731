package io.kvcache.transport.remote;

import io.kvcache.transport.shm.OneSidedCounters;
import java.util.concurrent.atomic.LongAdder;

/// Counts what [RemoteStats] tells. Any thread.
final class RemoteCounters {

    final LongAdder failed = new LongAdder();
    final LongAdder corrupt = new LongAdder();
    final LongAdder outOfMemory = new LongAdder();
    final LongAdder bytesIn = new LongAdder();
    final LongAdder bytesOut = new LongAdder();
    final LongAdder mapped = new LongAdder();
    final LongAdder fetched = new LongAdder();
    final LongAdder staged = new LongAdder();
    final OneSidedCounters oneSided = new OneSidedCounters();
}
