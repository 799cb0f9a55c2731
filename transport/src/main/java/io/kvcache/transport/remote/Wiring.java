package io.kvcache.transport.remote;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.atomic.AtomicInteger;

/// What tables, views and writers of one remote cache share.
///
/// @param open tables, views and writers
/// @param fetching reads what arrives later
record Wiring(
        Uplink uplink,
        RemoteOptions options,
        ArrivalMemory memory,
        RemoteCounters counters,
        AtomicInteger open,
        ExecutorService fetching) {}
