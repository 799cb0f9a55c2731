package io.kvcache.server.resp;

import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.resp.RespProtocol.RespStats;
import java.time.Duration;
import java.util.List;

/// SAVE: answered when all that was stored before it is on disk and survives a crash. LASTSAVE:
/// when it was, the last time.
///
/// It writes what all tenants have stored, and may take minutes of the disks' time. So where
/// there are several, it is for the default tenant alone.
final class SaveCommand {

    /// Longer than a disk takes for the memory of most machines, shorter than people wait.
    private static final Duration TIMEOUT = Duration.ofMinutes(5);

    private static final long ALL_SAVED = -1;

    private final RespContext context;
    private final RespStats stats;

    SaveCommand(RespContext context, RespStats stats) {
        this.context = context;
        this.stats = stats;
    }

    List<CommandSpec> commands() {
        CommandSpec.ArgumentPositions none = CommandSpec.ArgumentPositions.NONE;
        return List.of(
                CommandSpec.of("SAVE", 1, "admin", none, this::save),
                CommandSpec.of(
                        "LASTSAVE",
                        1,
                        "fast",
                        none,
                        (session, request, out) -> out.writeInteger(stats.savedSeconds.get())));
    }

    private void save(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
        if (!context.soleTenant() && !context.tenant().equals(TenantConfig.DEFAULT)) {
            throw new CommandException("NOPERM tenant " + context.tenant()
                    + " may not run 'save': it writes the values of all tenants, and is for tenant "
                    + TenantConfig.DEFAULT);
        }
        if (!context.serverInfo().hasDisk()) {
            throw new CommandException("ERR no disk is configured, so nothing can be saved; set disks");
        }
        session.handler()
                .<Long>await(
                        then -> Thread.ofVirtual().start(() -> then.accept(flushAll())),
                        unsavedBytes -> {
                            if (unsavedBytes == ALL_SAVED) {
                                stats.savedSeconds.set(
                                        context.keyspaceRouter().ownKeyspace().nowMillis() / 1000);
                                out.writeOk();
                            } else {
                                out.writeError("ERR not all is on disk, " + unsavedBytes
                                        + " bytes are in memory alone: " + unsavedCause());
                            }
                        },
                        _ -> {});
    }

    /// Returns what is wrong with the disks, or may be.
    private String unsavedCause() {
        List<String> problems = context.serverInfo().diskProblems().get();
        return problems.isEmpty()
                ? "a disk fails, is full or slow, or a value is larger than half a percent of it"
                : String.join("; ", problems);
    }

    /// Brings all to disk; bytes that are not there after that.
    private long flushAll() {
        return context.cache().flush(TIMEOUT)
                ? ALL_SAVED
                : context.unsavedBytes().getAsLong();
    }
}
