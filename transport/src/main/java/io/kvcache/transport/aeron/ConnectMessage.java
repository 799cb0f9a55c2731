package io.kvcache.transport.aeron;

import io.kvcache.transport.wire.ProtocolException;
import java.nio.ByteOrder;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/// The first message of a connection: where its answers go.
///
/// ```
/// 0 u32 magic "KVCA"     4 u32 version     8 i32 stream     12 u32 port
/// ```
///
/// Not the host: answers go where the client's bytes come from, so that nobody has them sent to others.
///
/// @param stream that the client listens to
/// @param port that it listens at, 1 to 65,535; 0 for IPC
record ConnectMessage(int stream, int port) {

    /// Where clients begin.
    static final int STREAM = 7420;

    static final int BYTES = 16;

    private static final int MAGIC = 'K' | 'V' << 8 | 'C' << 16 | 'A' << 24;
    private static final int VERSION = 1;
    private static final int MAX_PORT = 65_535;

    /// @param udp whether a port is needed
    static ConnectMessage read(DirectBuffer from, int offset, int bytes, boolean udp) throws ProtocolException {
        if (bytes < BYTES || from.getInt(offset, ByteOrder.LITTLE_ENDIAN) != MAGIC) {
            throw new ProtocolException(
                    "a first message of " + bytes + " bytes; allowed: " + BYTES + ", beginning \"KVCA\"");
        }
        int version = from.getInt(offset + 4, ByteOrder.LITTLE_ENDIAN);
        if (version != VERSION) {
            throw new ProtocolException("version = " + version + "; allowed: " + VERSION);
        }
        int stream = from.getInt(offset + 8, ByteOrder.LITTLE_ENDIAN);
        int port = from.getInt(offset + 12, ByteOrder.LITTLE_ENDIAN);
        boolean fits = udp ? port > 0 && port <= MAX_PORT : port == 0;
        if (stream == STREAM || !fits) {
            throw new ProtocolException("stream = %d, port = %d; allowed: any other stream than %d, and %s"
                    .formatted(stream, port, STREAM, udp ? "1 to 65535" : "0"));
        }
        return new ConnectMessage(stream, port);
    }

    void write(MutableDirectBuffer to, int offset) {
        to.putInt(offset, MAGIC, ByteOrder.LITTLE_ENDIAN);
        to.putInt(offset + 4, VERSION, ByteOrder.LITTLE_ENDIAN);
        to.putInt(offset + 8, stream, ByteOrder.LITTLE_ENDIAN);
        to.putInt(offset + 12, port, ByteOrder.LITTLE_ENDIAN);
    }
}
