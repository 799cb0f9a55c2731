package io.kvcache.bench.transport;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.zip.CRC32C;

/// Moving bytes over a socket, and summing them as the remote cache does.
final class SummingSocketIo {

    /// What a bare request and a bare reply consist of, before bytes.
    static final int HEAD_BYTES = 16;

    private static final int CHUNK_BYTES = 256 << 10;

    private SummingSocketIo() {}

    static void read(SocketChannel from, ByteBuffer to) throws IOException {
        while (to.hasRemaining()) {
            if (from.read(to) < 0) {
                throw new EOFException("the other side has closed");
            }
        }
    }

    /// Reads to the limit and sums on the way.
    static int readSummed(SocketChannel from, ByteBuffer to) throws IOException {
        CRC32C crc = new CRC32C();
        int end = to.limit();
        while (to.position() < end) {
            int start = to.position();
            to.limit(Math.min(end, start + CHUNK_BYTES));
            if (from.read(to) < 0) {
                throw new EOFException("the other side has closed");
            }
            crc.update(to.duplicate().flip().position(start));
            to.limit(end);
        }
        return (int) crc.getValue();
    }

    static int sum(ByteBuffer of) {
        CRC32C crc = new CRC32C();
        crc.update(of.duplicate());
        return (int) crc.getValue();
    }

    static void write(SocketChannel to, ByteBuffer... all) throws IOException {
        while (all[all.length - 1].hasRemaining()) {
            to.write(all);
        }
    }
}
