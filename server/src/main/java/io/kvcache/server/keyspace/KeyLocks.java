package io.kvcache.server.keyspace;

import io.kvcache.core.identity.BlockKey;
import java.util.concurrent.locks.ReentrantLock;

/// One lock of a fixed number for each key, held while store and index change together.
///
/// So that an expiry that was found on the old value cannot take away the new one, and an index entry always is of
/// the value that is in the store. Readers take none. Nobody holds two.
final class KeyLocks {

    /// Event loops are few; a thousand locks make meeting by chance rare, and cost 50 KB.
    private static final int COUNT = 1024;

    private final ReentrantLock[] locks = new ReentrantLock[COUNT];

    KeyLocks() {
        for (int i = 0; i < COUNT; i++) {
            locks[i] = new ReentrantLock();
        }
    }

    ReentrantLock of(BlockKey hash) {
        return locks[(int) hash.lo() & COUNT - 1];
    }
}
