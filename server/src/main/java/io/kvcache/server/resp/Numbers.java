package io.kvcache.server.resp;

/// Integers as the protocol writes them: an optional minus and decimal digits, nothing else.
final class Numbers {

    private static final int MOST_DIGITS = 20;

    private Numbers() {}

    static long parse(byte[] text) throws CommandException {
        try {
            return parse(text, 0, text.length);
        } catch (NumberFormatException _) {
            throw new CommandException(CommandException.NOT_AN_INTEGER);
        }
    }

    /// Parses a range of a line.
    ///
    /// @throws NumberFormatException when it is no integer of 64 bits
    static long parse(byte[] text, int from, int to) {
        boolean negative = from < to && text[from] == '-';
        int at = negative ? from + 1 : from;
        if (at >= to || to - at > MOST_DIGITS) {
            throw new NumberFormatException();
        }
        long value = 0;
        for (; at < to; at++) {
            int digit = text[at] - '0';
            if (digit < 0 || digit > 9) {
                throw new NumberFormatException();
            }
            value = append(value, negative ? -digit : digit);
        }
        return value;
    }

    private static long append(long value, int digit) {
        try {
            return Math.addExact(Math.multiplyExact(value, 10L), digit);
        } catch (ArithmeticException _) {
            throw new NumberFormatException();
        }
    }
}
