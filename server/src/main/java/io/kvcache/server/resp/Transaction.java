package io.kvcache.server.resp;

import io.netty.buffer.Unpooled;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/// What one client has said between MULTI and EXEC: commands that wait, and then run in order,
/// one reply each.
///
/// Nothing of a key is claimed while its command waits, so a client that says MULTI and no EXEC
/// is in nobody's way: values wait in the heap, and go to slots when their command runs. Other
/// clients' commands may run in between.
///
/// **Threads.** The connection's loop.
final class Transaction {

    /// What a command takes of the heap beside its words.
    private static final int EACH_BYTES = 128;

    private static final String SPOILED = "ERR the transaction is discarded because of previous errors";

    private enum State {
        NONE,
        QUEUEING,
        RUNNING
    }

    private final RespLimits limits;
    private final Arguments arguments;
    private final Deque<Request> queue = new ArrayDeque<>();
    private State state = State.NONE;
    private boolean spoiled;
    private long bytes;

    /// @param arguments what the words take of the heap
    Transaction(RespLimits limits, Arguments arguments) {
        this.limits = limits;
        this.arguments = arguments;
    }

    /// Whether commands are queued and not run.
    boolean isOpen() {
        return state == State.QUEUEING;
    }

    void begin() {
        state = State.QUEUEING;
    }

    /// Whether EXEC has commands left to run.
    boolean hasNext() {
        return state == State.RUNNING;
    }

    /// A value is about to be read, in a transaction that is open.
    IncomingValue value(long length) {
        String refusal = spoiled ? SPOILED : reserve(length);
        return refusal == null ? IncomingValue.kept((int) length) : IncomingValue.refused(refusal);
    }

    /// Queues a command, or has EXEC refuse all of them.
    ///
    /// @param mistake what is wrong with it, or null
    /// @return whether it is queued
    boolean add(Request request, @Nullable String mistake, Replies out) {
        String refusal = mistake == null ? refusal(request) : mistake;
        if (refusal != null) {
            spoiled = true;
            forget();
            out.error(refusal);
            return false;
        }
        if (!spoiled) {
            queue.add(request);
        }
        out.simple("QUEUED");
        return true;
    }

    private @Nullable String refusal(Request request) {
        for (IncomingValue value : request.values()) {
            if (value.refusal() != null) {
                return value.refusal();
            }
        }
        if (spoiled) {
            return null; // nothing of it is kept
        }
        return queue.size() == limits.queuedCommands()
                ? "ERR a transaction takes up to " + limits.queuedCommands() + " commands"
                : reserve(request.wordBytes() + EACH_BYTES);
    }

    /// Takes heap, or answers why it may not.
    private @Nullable String reserve(long more) {
        if (more > limits.queuedBytes() - bytes) {
            return "ERR " + more + " more bytes; a transaction takes up to " + limits.queuedBytes()
                    + " bytes of commands and values. Pipelines without MULTI take any number";
        }
        if (more > arguments.sharedBytes() - bytes) {
            return "ERR " + more + " more bytes; what waits for EXEC takes up to " + arguments.sharedBytes()
                    + " bytes of this server's heap. Pipelines without MULTI take any number";
        }
        try {
            arguments.add(more);
            bytes += more;
            return null;
        } catch (RespException full) {
            return "ERR " + full.getMessage();
        }
    }

    /// EXEC.
    void run(Replies out) throws CommandException {
        boolean refused = spoiled;
        requireOpen("EXEC");
        if (refused) {
            end();
            throw new CommandException("EXECABORT Transaction discarded because of previous errors.");
        }
        out.array(queue.size());
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
    int next(RespSession session, Replies replies) {
        Request queued = queue.poll();
        if (queued == null) {
            end();
            return 0;
        }
        try (Request request = new Request()) {
            for (int i = 0; i < queued.count(); i++) {
                byte[] word = queued.bytes(i);
                IncomingValue value = session.commands().value(session, request, queued.count(), word.length);
                if (value == null) {
                    request.add(word);
                } else {
                    value.take(Unpooled.wrappedBuffer(word), word.length);
                    request.add(value);
                }
            }
            session.commands().run(session, request, replies);
            return request.count();
        }
    }

    /// Forgets what was queued; the next command runs at once.
    void end() {
        state = State.NONE;
        spoiled = false;
        forget();
    }

    private void forget() {
        queue.clear();
        bytes = 0;
        arguments.release();
    }
}
