package io.kvcache.server.resp;

import io.kvcache.server.keyspace.HintLimits.HintNumber;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.resp.RespDecoder.RespException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// The words of a command. Values are kept apart, as they are not in the heap.
///
/// **Ownership.** The code that runs the command closes it; values that were not stored then give their room back.
final class RespRequest implements AutoCloseable {

    /// In place of a value that is not in the heap.
    static final byte[] VALUE_PLACEHOLDER = new byte[0];

    /// No command has a longer name.
    private static final int MAX_CACHED_NAME = 32;

    private final List<byte[]> arguments = new ArrayList<>(4);
    private List<ValueUpload> values = List.of();
    private String name = "";
    private byte[] lastSpelling;
    private String lastUpperCase;
    private @Nullable CommandTable resolvedIn;
    private @Nullable CommandSpec command;

    RespRequest() {
        lastSpelling = VALUE_PLACEHOLDER;
        lastUpperCase = "";
    }

    /// The next of a client, which mostly says the same command again.
    RespRequest(RespRequest before) {
        boolean isShort = before.lastSpelling.length <= MAX_CACHED_NAME;
        lastSpelling = isShort ? before.lastSpelling : VALUE_PLACEHOLDER;
        lastUpperCase = isShort ? before.lastUpperCase : "";
        resolvedIn = isShort ? before.resolvedIn : null;
        command = isShort ? before.command : null;
    }

    void add(byte[] argument) {
        if (arguments.isEmpty()) {
            if (!Arrays.equals(lastSpelling, argument)) {
                lastSpelling = argument;
                lastUpperCase = toUpperCase(argument);
                resolvedIn = null;
            }
            name = lastUpperCase;
        }
        arguments.add(argument);
    }

    void add(ValueUpload value) {
        arguments.add(value.heap());
        if (values.isEmpty()) {
            values = new ArrayList<>(1);
        }
        values.add(value);
    }

    /// The command's name in capitals; empty before the first argument.
    String name() {
        return name;
    }

    /// The command that this request calls, or null when the table has none of its name. The table is searched
    /// once, and not at all when the client repeats its last command.
    @SuppressWarnings("ReferenceEquality") // there is one table for each tenant
    @Nullable
    CommandSpec command(CommandTable table) {
        if (resolvedIn != table) {
            command = table.find(name);
            resolvedIn = table;
        }
        return command;
    }

    /// Arguments, the name included.
    int count() {
        return arguments.size();
    }

    /// An argument that is not a value.
    byte[] argument(int index) {
        return arguments.get(index);
    }

    String argumentText(int index) {
        return new String(arguments.get(index), StandardCharsets.UTF_8);
    }

    /// An argument in capitals, for words of the protocol.
    String argumentUpperCase(int index) {
        return toUpperCase(arguments.get(index));
    }

    long argumentLong(int index) throws CommandException {
        return IntegerCodec.parse(arguments.get(index));
    }

    /// An argument of one of KVCache's own commands, whose errors name what was wrong. Redis' commands keep Redis'
    /// text.
    ///
    /// @throws IllegalArgumentException that names it and its range, unless it is an integer of 64 bits
    long argumentLong(int index, HintNumber number) {
        byte[] digits = arguments.get(index);
        try {
            return IntegerCodec.parse(digits, 0, digits.length);
        } catch (NumberFormatException _) {
            throw number.outOfRange(argumentText(index));
        }
    }

    /// Heap that its arguments take; the bytes of values do not count.
    long argumentBytes() {
        long bytes = (long) RequestMemory.ARGUMENT_OVERHEAD_BYTES * (arguments.size() + values.size());
        for (byte[] each : arguments) {
            bytes += each.length;
        }
        for (ValueUpload each : values) {
            bytes -= each.heap().length;
        }
        return bytes;
    }

    /// The values in order.
    List<ValueUpload> values() {
        return values;
    }

    private static String toUpperCase(byte[] word) {
        return new String(word, StandardCharsets.ISO_8859_1).toUpperCase(Locale.ROOT);
    }

    @Override
    public void close() {
        values.forEach(ValueUpload::close);
    }

    /// The heap that the arguments of one connection's request take until it is answered. A little is every
    /// connection's own; beyond it all connections share what there is, so that clients that send much and finish
    /// nothing cannot end the server.
    ///
    /// **Threads.** The connection's loop.
    static final class RequestMemory {

        /// Free for one request.
        private static final int FREE_BYTES = 64 << 10;

        /// Free for commands that wait for EXEC, for as long as the client likes: 40 MiB for ten thousand
        /// connections.
        private static final int FREE_QUEUED_BYTES = 4 << 10;

        /// Heap of an array beside its bytes.
        static final int ARGUMENT_OVERHEAD_BYTES = 32;

        /// Heap of a value beside its slot.
        private static final int VALUE_OVERHEAD_BYTES = 256;

        private final ByteBudget shared;
        private final @Nullable ByteBudget queued;
        private final int freeBytes;
        private long bytes;
        private long taken;

        /// @param shared by all connections
        RequestMemory(ByteBudget shared) {
            this(shared, null, FREE_BYTES);
        }

        private RequestMemory(ByteBudget shared, @Nullable ByteBudget waiting, int ownBytes) {
            this.shared = shared;
            this.queued = waiting;
            this.freeBytes = ownBytes;
        }

        /// Memory for commands that wait for EXEC.
        ///
        /// @param waiting part of it that all such may take: clients may wait as long as they like,
        ///     and others have requests to make meanwhile
        static RequestMemory forQueued(ByteBudget shared, ByteBudget waiting) {
            return new RequestMemory(shared, waiting, FREE_QUEUED_BYTES);
        }

        /// The limit for all connections together.
        long sharedBytes() {
            return (queued == null ? shared : queued).limitBytes();
        }

        /// The budget that all connections of a server share: an eighth of its heap.
        static ByteBudget heapBudget() {
            return new ByteBudget(Runtime.getRuntime().maxMemory() / 8);
        }

        /// An argument of so many bytes is about to be read.
        ///
        /// @throws RespException when there is no room for it
        void reserveArgument(long argument) throws RespException {
            reserve(argument + ARGUMENT_OVERHEAD_BYTES);
        }

        /// A value is about to be read.
        ///
        /// @throws RespException when there is no room for what has to be known of it
        void reserveValue() throws RespException {
            reserve(VALUE_OVERHEAD_BYTES);
        }

        private void reserve(long more) throws RespException {
            bytes += more;
            long beyond = bytes - freeBytes - taken;
            if (beyond <= 0) {
                return;
            }
            if (queued != null && !queued.tryAcquire(beyond)) {
                throw new RespException(
                        "transactions take all of the " + queued.limitBytes()
                                + " bytes of heap that there are for what waits for EXEC; say it again later, or without MULTI");
            }
            if (!shared.tryAcquire(beyond)) {
                if (queued != null) {
                    queued.release(beyond);
                }
                throw new RespException(
                        "requests take all of the " + shared.limitBytes()
                                + " bytes of heap that there are for their arguments; say it again later, or in smaller requests");
            }
            taken += beyond;
        }

        /// The request is answered, or given up.
        void release() {
            bytes = 0;
            if (taken > 0) { // for most requests nothing was, and what loops share is dear to touch
                shared.release(taken);
                if (queued != null) {
                    queued.release(taken);
                }
                taken = 0;
            }
        }
    }
}
