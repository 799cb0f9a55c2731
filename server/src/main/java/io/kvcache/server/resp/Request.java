package io.kvcache.server.resp;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/// The words of a command. Values are kept apart, as they are not in the heap.
///
/// **Ownership.** Whoever runs the command closes it; values that were not stored then give their room back.
final class Request implements AutoCloseable {

    /// In place of a value that is not in the heap.
    static final byte[] NOT_HERE = new byte[0];

    /// No command has a longer name.
    private static final int MOST_REMEMBERED = 32;

    private final List<byte[]> arguments = new ArrayList<>(4);
    private List<IncomingValue> values = List.of();
    private String name = "";
    private byte[] spelled;
    private String inCapitals;

    Request() {
        spelled = NOT_HERE;
        inCapitals = "";
    }

    /// The next of a client, which mostly says the same command again.
    Request(Request before) {
        boolean isShort = before.spelled.length <= MOST_REMEMBERED;
        spelled = isShort ? before.spelled : NOT_HERE;
        inCapitals = isShort ? before.inCapitals : "";
    }

    void add(byte[] argument) {
        if (arguments.isEmpty()) {
            if (!Arrays.equals(spelled, argument)) {
                spelled = argument;
                inCapitals = upper(argument);
            }
            name = inCapitals;
        }
        arguments.add(argument);
    }

    void add(IncomingValue value) {
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

    /// Arguments, the name included.
    int count() {
        return arguments.size();
    }

    /// An argument that is no value.
    byte[] bytes(int index) {
        return arguments.get(index);
    }

    String text(int index) {
        return new String(arguments.get(index), StandardCharsets.UTF_8);
    }

    /// An argument in capitals, for words of the protocol.
    String word(int index) {
        return upper(arguments.get(index));
    }

    long integer(int index) throws CommandException {
        return Numbers.parse(arguments.get(index));
    }

    /// What its words take of the heap; the bytes of values do not count.
    long wordBytes() {
        long bytes = (long) Arguments.EACH_BYTES * (arguments.size() + values.size());
        for (byte[] each : arguments) {
            bytes += each.length;
        }
        for (IncomingValue each : values) {
            bytes -= each.heap().length;
        }
        return bytes;
    }

    /// The values in order.
    List<IncomingValue> values() {
        return values;
    }

    private static String upper(byte[] word) {
        return new String(word, StandardCharsets.ISO_8859_1).toUpperCase(Locale.ROOT);
    }

    @Override
    public void close() {
        values.forEach(IncomingValue::close);
    }
}
