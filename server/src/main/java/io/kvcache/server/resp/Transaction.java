package io.kvcache.server.resp;

import io.kvcache.server.resp.RespDecoder.RespException;
import io.kvcache.server.resp.RespRequest.RequestMemory;
import io.netty.buffer.Unpooled;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The commands of one client between MULTI and EXEC: they wait, and then run in order,
/// one reply each.
///
/// Nothing of a key is claimed while its command waits, so a client that says MULTI and no EXEC
/// blocks no other client: values wait in the heap, and go to slots when their command runs. Other
/// clients' commands may run in between.
///
/// **Threads.** The connection's loop.
final class Transaction {

    /// Heap of a queued command beside its arguments.
    private static final int COMMAND_OVERHEAD_BYTES = 128;

    static final int MAX_COMMANDS = 1 << 16;

    /// Words and values together.
    private static final long MAX_BYTES = 64L << 20;

    private static final String DISCARDED = "ERR the transaction is discarded because of previous errors";

    private enum State {
        NONE,
        QUEUEING,
        RUNNING
    }

    private final RequestMemory requestMemory;
    private final Deque<RespRequest> queue = new ArrayDeque<>();
    private State state = State.NONE;
    private boolean failed;
    private long bytes;

    /// @param requestMemory what the words take of the heap
    Transaction(RequestMemory requestMemory) {
        this.requestMemory = requestMemory;
    }

    /// Returns whether commands are queued and not run.
    boolean isOpen() {
        return state == State.QUEUEING;
    }

    void begin() {
        state = State.QUEUEING;
    }

    /// Returns whether EXEC has commands left to run.
    boolean hasNext() {
        return state == State.RUNNING;
    }

    /// A value is about to be read, in a transaction that is open.
    ValueUpload bufferValue(long length) {
        String refusal = failed ? DISCARDED : reserveMemory(length);
        return refusal == null ? ValueUpload.buffered((int) length) : ValueUpload.rejected(refusal);
    }

    /// Queues a command, or has EXEC refuse all of them.
    ///
    /// @param mistake what is wrong with it, or null
    /// @return whether it is queued
    boolean enqueue(RespRequest request, @Nullable String mistake, RespEncoder out) {
        String refusal = mistake == null ? rejectionOf(request) : mistake;
        if (refusal != null) {
            failed = true;
            clear();
            out.writeError(refusal);
            return false;
        }
        if (!failed) {
            queue.add(request);
        }
        out.writeSimple("QUEUED");
        return true;
    }

    private @Nullable String rejectionOf(RespRequest request) {
        for (ValueUpload value : request.values()) {
            if (value.rejection() != null) {
                return value.rejection();
            }
        }
        if (failed) {
            return null; // nothing of it is kept
        }
        return queue.size() == MAX_COMMANDS
                ? "ERR a transaction takes up to " + MAX_COMMANDS + " commands"
                : reserveMemory(request.argumentBytes() + COMMAND_OVERHEAD_BYTES);
    }

    /// Takes heap, or answers why it may not.
    private @Nullable String reserveMemory(long more) {
        if (more > MAX_BYTES - bytes) {
            return "ERR " + more + " more bytes; a transaction takes up to " + MAX_BYTES
                    + " bytes of commands and values. Pipelines without MULTI take any number";
        }
        if (more > requestMemory.sharedBytes() - bytes) {
            return "ERR " + more + " more bytes; what waits for EXEC takes up to " + requestMemory.sharedBytes()
                    + " bytes of this server's heap. Pipelines without MULTI take any number";
        }
        try {
            requestMemory.reserveArgument(more);
            bytes += more;
            return null;
        } catch (RespException full) {
            return "ERR " + full.getMessage();
        }
    }

    /// EXEC.
    void run(CommandTable commands, RespEncoder out) throws CommandException {
        boolean refused = failed;
        requireOpen("EXEC");
        if (refused) {
            end();
            throw new CommandException("EXECABORT Transaction discarded because of previous errors.");
        }
        try {
            commands.requireOwn(queue);
        } catch (CommandException elsewhere) {
            end();
            throw elsewhere;
        }
        out.beginArray(queue.size());
        state = State.RUNNING;
    }

    /// DISCARD.
    void discard() throws CommandException {
        requireOpen("DISCARD");
        end();
    }

    private void requireOpen(String command) throws CommandException {
        if (state != State.QUEUEING) {
            throw new CommandException("ERR " + command + " without MULTI");
        }
    }

    /// Runs the next of its commands, which may have to wait for something.
    ///
    /// @return words that it has; 0 when there is none left
    int runNext(RespSession session, RespEncoder respEncoder) {
        RespRequest queued = queue.poll();
        if (queued == null) {
            end();
            return 0;
        }
        try (RespRequest request = new RespRequest(queued)) {
            for (int i = 0; i < queued.count(); i++) {
                byte[] word = queued.argument(i);
                ValueUpload value = session.commands().beginValue(session, request, queued.count(), word.length);
                if (value == null) {
                    request.add(word);
                } else {
                    value.onBytes(Unpooled.wrappedBuffer(word), word.length);
                    request.add(value);
                }
            }
            session.commands().run(session, request, respEncoder);
            return request.count();
        }
    }

    /// Forgets what was queued; the next command runs at once.
    void end() {
        state = State.NONE;
        failed = false;
        clear();
    }

    private void clear() {
        queue.clear();
        bytes = 0;
        requestMemory.release();
    }

    /// MULTI, EXEC, DISCARD, WATCH, UNWATCH: what clients send around a pipeline unless they are told
    /// them not to.
    ///
    /// EXEC runs what was queued in order and answers all of it together; it does not keep other
    /// clients out meanwhile. So WATCH is refused: a client that sends it relies on exactly that.
    static final class TransactionCommands {

        /// Commands that run at once instead of being queued.
        private static final Set<String> IMMEDIATE = Set.of("EXEC", "DISCARD", "MULTI", "WATCH", "RESET", "QUIT");

        /// Commands that a transaction cannot hold, as they change the user or the form of replies, or
        /// takes minutes.
        private static final Set<String> NOT_QUEUEABLE = Set.of("AUTH", "HELLO", "SAVE");

        private TransactionCommands() {}

        static List<CommandSpec> commands() {
            CommandSpec.ArgumentPositions none = CommandSpec.ArgumentPositions.NONE;
            return List.of(
                    CommandSpec.of("MULTI", 1, "noscript fast", none, TransactionCommands::multi),
                    CommandSpec.of("EXEC", 1, "noscript", none, (session, request, out) -> {
                        session.transaction().run(session.commands(), out);
                    }),
                    CommandSpec.of("DISCARD", 1, "noscript fast", none, (session, request, out) -> {
                        session.transaction().discard();
                        out.writeOk();
                    }),
                    CommandSpec.of(
                            "WATCH",
                            -2,
                            "noscript fast",
                            CommandSpec.ArgumentPositions.ALL,
                            TransactionCommands::watch),
                    CommandSpec.of("UNWATCH", 1, "noscript fast", none, (session, request, out) -> out.writeOk()));
        }

        /// Returns whether a command waits for EXEC, when a transaction is open.
        static boolean isQueued(String name) {
            return !IMMEDIATE.contains(name);
        }

        /// Returns whether a command may wait for EXEC.
        static boolean isQueueable(String name) {
            return !NOT_QUEUEABLE.contains(name);
        }

        private static void multi(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
            if (session.transaction().isOpen()) {
                throw new CommandException("ERR MULTI calls can not be nested");
            }
            session.transaction().begin();
            out.writeOk();
        }

        private static void watch(RespSession session, RespRequest request, RespEncoder out) throws CommandException {
            throw new CommandException("ERR WATCH is not served: EXEC here does not keep other clients out, so nothing"
                    + " can be promised of the keys. SET with NX or XX looks and stores at one moment");
        }
    }
}
