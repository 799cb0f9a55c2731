package io.kvcache.server.resp;

import io.netty.buffer.ByteBuf;
import java.util.ArrayList;
import java.util.List;

/// Finds the keys of the requests that have come in a pipeline, before they are decoded: the argument after each
/// command's name. It only looks; what it does not understand ends its search.
final class PipelineScanner {

    /// Keys found at a time: enough for their look-ups to overlap, few enough for the processor's first cache.
    static final int MAX_KEYS = 16;

    /// Fewer bytes hold too few requests.
    private static final int MIN_BYTES = 100;

    private static final int MAX_KEY_BYTES = 128;
    private static final int MAX_ARGUMENTS = 8;
    private static final int NOT_A_NUMBER = -1;

    private final ByteBuf in;
    private final int end;
    private int at;

    private PipelineScanner(ByteBuf in) {
        this.in = in;
        at = in.readerIndex();
        end = in.writerIndex();
    }

    /// The keys of the first requests, one of each.
    ///
    /// @param in where a request begins; not changed
    static List<byte[]> keys(ByteBuf in) {
        if (in.readableBytes() < MIN_BYTES) {
            return List.of();
        }
        PipelineScanner scanner = new PipelineScanner(in);
        List<byte[]> keys = new ArrayList<>(MAX_KEYS);
        while (keys.size() < MAX_KEYS && scanner.scanRequest(keys)) {}
        return keys;
    }

    /// Adds the key of the next request; returns whether there was one.
    private boolean scanRequest(List<byte[]> keys) {
        int count = readNumber('*');
        if (count < 2 || count > MAX_ARGUMENTS) {
            return false;
        }
        byte[] key = {};
        for (int i = 0; i < count; i++) {
            int bytes = readNumber('$');
            if (bytes < 0 || bytes > end - at - 2) {
                return false;
            }
            if (i == 1 && bytes > 0 && bytes <= MAX_KEY_BYTES) {
                key = new byte[bytes];
                in.getBytes(at, key);
            }
            at += bytes + 2;
        }
        return key.length > 0 && keys.add(key);
    }

    /// Reads a line of a mark and up to five digits.
    private int readNumber(char mark) {
        if (at >= end || in.getByte(at) != mark) {
            return NOT_A_NUMBER;
        }
        int last = Math.min(end - 1, at + 6);
        int number = 0;
        for (int i = at + 1; i < last; i++) {
            byte digit = in.getByte(i);
            if (digit == '\r' && i > at + 1) {
                at = i + 2;
                return number;
            }
            if (digit < '0' || digit > '9') {
                return NOT_A_NUMBER;
            }
            number = 10 * number + digit - '0';
        }
        return NOT_A_NUMBER;
    }
}
