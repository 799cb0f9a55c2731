package io.kvcache.server.keyspace;

import io.kvcache.server.quota.Quota;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// Who is writing which key at this moment.
///
/// The store lets one writer fill a key's new value. A second one that comes meanwhile **joins**: its bytes are
/// thrown away as they arrive, and it is answered when the first has finished. That is as if it had been written
/// just before the first one's value replaced it, so nobody sees a difference, and neither needs the memory twice nor
/// waits for the other's network with its own body in hand. Writers of one key mostly bring the same bytes anyway:
/// keys of KV caches are digests of content.
///
/// **Threads.** Any.
final class Writings {

    private final ConcurrentHashMap<Key, Writing> writings = new ConcurrentHashMap<>();

    /// Begins to write a key, or answers null when somebody is at it.
    @Nullable
    Writing begin(Key key) {
        Writing own = new Writing(key);
        return writings.putIfAbsent(key, own) == null ? own : null;
    }

    /// Runs `after` once whoever writes the key has finished; at once when nobody does.
    void join(Key key, Runnable after) {
        Writing other = writings.get(key);
        if (other == null || !other.add(after)) {
            after.run();
        }
    }

    /// Whether somebody writes the key at this moment.
    boolean has(Key key) {
        return writings.containsKey(key);
    }

    /// How many keys are being written.
    int count() {
        return writings.size();
    }

    /// One writer's time at a key.
    final class Writing {

        private final Key key;
        private List<Runnable> joined = List.of();
        private boolean finished;

        private Writing(Key key) {
            this.key = key;
        }

        private synchronized boolean add(Runnable after) {
            if (finished) {
                return false;
            }
            if (joined.isEmpty()) {
                joined = new ArrayList<>();
            }
            joined.add(after);
            return true;
        }

        private synchronized List<Runnable> finish() {
            finished = true;
            return joined;
        }

        /// The value is stored or given up: the others go on.
        void end() {
            writings.remove(key, this);
            finish().forEach(Runnable::run);
        }
    }

    /// What who writes a key holds beside its memory.
    static final class Claim {

        private final Writing writing;
        private final Quota.Share share;
        private final Runnable arrived;
        private boolean open = true;

        /// @param share of the quota
        /// @param arrived run once when the bytes are not on their way any more
        Claim(Writing writing, Quota.Share share, Runnable arrived) {
            this.writing = writing;
            this.share = share;
            this.arrived = arrived;
        }

        /// The bytes are there, or will not come: the value itself counts from here on, if there is one.
        void release() {
            share.close();
            if (open) {
                open = false;
                arrived.run();
            }
        }

        /// The key may be written by others.
        void end() {
            release();
            writing.end();
        }
    }
}
