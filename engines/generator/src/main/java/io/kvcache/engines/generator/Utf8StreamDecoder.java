package io.kvcache.engines.generator;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;

/// Decodes UTF-8 that comes in pieces, and keeps the bytes of a character until it is complete. Malformed bytes
/// become U+FFFD as soon as they are known to be malformed.
///
/// **Threads.** One at a time.
@SuppressWarnings("missing-explicit-ctor") // It takes nothing.
public final class Utf8StreamDecoder {

    private final CharsetDecoder decoder = StandardCharsets.UTF_8
            .newDecoder()
            .onMalformedInput(CodingErrorAction.REPLACE)
            .onUnmappableCharacter(CodingErrorAction.REPLACE);

    /// Bytes of a character that is not complete.
    private byte[] pending = {};

    /// Adds bytes and returns the characters that are complete with them.
    public String add(byte... bytes) {
        return decode(bytes, false);
    }

    /// Returns U+FFFD for a character that was not completed, else nothing. After it, another text may begin.
    public String flush() {
        String rest = decode(new byte[0], true);
        decoder.reset();
        return rest;
    }

    private String decode(byte[] more, boolean end) {
        ByteBuffer in = ByteBuffer.allocate(pending.length + more.length)
                .put(pending)
                .put(more)
                .flip();
        // UTF-8 has no more characters of UTF-16 than bytes.
        CharBuffer out = CharBuffer.allocate(in.remaining());
        decoder.decode(in, out, end);
        pending = new byte[in.remaining()];
        in.get(pending);
        return out.flip().toString();
    }
}
