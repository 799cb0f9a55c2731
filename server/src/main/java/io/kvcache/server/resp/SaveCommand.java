package io.kvcache.server.resp;

import io.kvcache.core.KvCache;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// SAVE: answered when all that was stored before it is on disk and survives a crash.
final class SaveCommand {

    /// Longer than a disk takes for the memory of most machines, shorter than people wait.
    private static final long LONGEST_NANOS = TimeUnit.MINUTES.toNanos(5);

    private final KvCache cache;

    SaveCommand(KvCache cache) {
        this.cache = cache;
    }

    List<CommandSpec> commands() {
        return List.of(CommandSpec.of("SAVE", 1, "admin", CommandSpec.Places.NONE, this::save));
    }

    private void save(RespSession session, Request request, Replies out) {
        session.awaitSlow(() -> cache.flush(LONGEST_NANOS), saved -> {
            if (saved) {
                out.ok();
            } else {
                out.error("ERR not all is on disk; the server may have none, or one that fails or is slow");
            }
        });
    }
}
