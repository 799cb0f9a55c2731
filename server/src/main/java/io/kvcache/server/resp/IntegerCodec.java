package io.kvcache.server.resp;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;

/// Integers as the protocol writes them: an optional minus and decimal digits, nothing else. There is one text for each
/// number, so no zero leads and none is negative: as with Redis, `01` and `-0` are no integers.
final class IntegerCodec {

    private static final int MAX_DIGITS = 20;

    private IntegerCodec() {}

    static long parse(byte[] text) throws CommandException {
        try {
            return parse(text, 0, text.length);
        } catch (NumberFormatException _) {
            throw new CommandException(CommandException.NOT_AN_INTEGER);
        }
    }

    /// Parses a range of a line.
    ///
    /// @throws NumberFormatException when it is not an integer of 64 bits
    static long parse(byte[] text, int from, int to) {
        boolean negative = from < to && text[from] == '-';
        int at = negative ? from + 1 : from;
        boolean isPadded = at < to && text[at] == '0' && (negative || to - at > 1);
        if (at >= to || to - at > MAX_DIGITS || isPadded) {
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

    /// Writes a number as decimal text.
    static void write(long number, ByteBuf out) {
        if (number == Long.MIN_VALUE) {
            ByteBufUtil.writeAscii(out, Long.toString(number));
            return;
        }
        if (number < 0) {
            out.writeByte('-');
        }
        long left = Math.abs(number);
        long unit = 1;
        while (left / unit >= 10) {
            unit *= 10;
        }
        for (; unit > 0; unit /= 10) {
            out.writeByte((int) ('0' + left / unit % 10));
        }
    }
}
