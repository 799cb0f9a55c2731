package io.kvcache.bench.opaque;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/// Chunks by `lm://` as it is today: numbers of 32 bits, little-endian, a key of 150 bytes; a PUT has no
/// reply.
final class LmChunkClient implements ChunkClient {

    private static final int PUT = 1;
    private static final int GET = 2;
    private static final int EXIST = 3;
    private static final int SUCCESS = 200;

    private static final int KEY_BYTES = 150;
    private static final int HEAD_BYTES = 36;
    private static final int REPLY_BYTES = 36;
    private static final int REPLY_TIMEOUT_MILLIS = 60_000;

    /// Format, dtype, location and shape of a tensor: any will do, as they come back as they came.
    private static final int[] TENSOR_HEADER = {1, 3, 1, 2, 32, 256, 1024};

    private final Socket socket;
    private final InputStream in;
    private final byte[] value;

    LmChunkClient(int port, byte[] value) throws IOException {
        socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(REPLY_TIMEOUT_MILLIS);
        in = new BufferedInputStream(socket.getInputStream(), 1 << 16);
        this.value = value;
    }

    @Override
    public boolean exists(String key) throws IOException {
        return sendRequest(EXIST, key).code() == SUCCESS;
    }

    @Override
    public boolean get(String key) throws IOException {
        ReplyHeader replyHeader = sendRequest(GET, key);
        in.skipNBytes(replyHeader.bytes());
        return replyHeader.code() == SUCCESS && replyHeader.bytes() == value.length;
    }

    @Override
    public void put(String key) throws IOException {
        byte[] head = head(PUT, value.length, key);
        byte[] all = Arrays.copyOf(head, head.length + value.length);
        System.arraycopy(value, 0, all, head.length, value.length);
        socket.getOutputStream().write(all);
    }

    private record ReplyHeader(int code, int bytes) {}

    private ReplyHeader sendRequest(int command, String key) throws IOException {
        socket.getOutputStream().write(head(command, 0, key));
        byte[] reply = in.readNBytes(REPLY_BYTES);
        if (reply.length < REPLY_BYTES) {
            throw new EOFException("the server closed the connection");
        }
        ByteBuffer numbers = ByteBuffer.wrap(reply).order(ByteOrder.LITTLE_ENDIAN);
        return new ReplyHeader(numbers.getInt(), numbers.getInt());
    }

    private static byte[] head(int command, int length, String key) {
        byte[] name = key.getBytes(StandardCharsets.ISO_8859_1);
        byte[] head = new byte[HEAD_BYTES + KEY_BYTES];
        Arrays.fill(head, HEAD_BYTES, head.length, (byte) ' ');
        System.arraycopy(name, 0, head, HEAD_BYTES, name.length);
        ByteBuffer numbers = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN);
        numbers.putInt(command).putInt(length);
        for (int number : TENSOR_HEADER) {
            numbers.putInt(number);
        }
        return head;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
