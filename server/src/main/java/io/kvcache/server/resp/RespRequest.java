package io.kvcache.server.resp;

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

    /// What its words take of the heap; the bytes of values do not count.
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
}
