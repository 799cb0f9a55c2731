package io.kvcache.server.http;

import java.util.concurrent.atomic.LongAdder;

/// What the front end counts over all its connections.
final class HttpStats {

    final LongAdder requests = new LongAdder();
    final LongAdder problems = new LongAdder();
}
