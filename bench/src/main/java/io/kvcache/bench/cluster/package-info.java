/// Trials of a cluster of server processes on this host: a trace is replayed through its clients while servers die,
/// stop,
/// leave and join.
@NullMarked
package io.kvcache.bench.cluster;

import org.jspecify.annotations.NullMarked;
