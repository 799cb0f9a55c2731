package io.kvcache.engines.llamacpp;

import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/// The properties that must be equal for two models to share state. Two that differ in any of them have different
/// namespaces, so neither finds what the other stored.
///
/// @param model a name for people; it counts as well
/// @param build the library's interface and a digest of the library
/// @param weights digest of the file of the model
/// @param layout types and sizes of keys and values, and their order
/// @param rope how positions turn keys
public record LlamaFingerprint(String model, String build, String weights, String layout, String rope) {

    private static final int MAX_HEAD_DIM = 65_536;

    /// The namespace of one tenant's blocks of a length.
    ///
    /// @param shape of a block
    /// @param tenant whose blocks these are; may be empty
    /// @param salt keeps users of a tenant apart; may be empty
    Namespace namespace(BlockShape shape, String tenant, String salt) {
        return Namespace.builder(model)
                .revision(weights)
                .dtype("llama.cpp sequence state")
                .layout("llama.cpp " + build + ", " + layout + ", rope " + rope)
                .tenant(tenant)
                .salt(salt)
                .part(Part.full(shape))
                .build();
    }

    /// A block that has room for the state of its tokens, as bytes: the order within is llama.cpp's own. It
    /// is at most some bytes a token and layer longer.
    static BlockShape shape(LlamaStateLayout layout, int blockTokens) {
        int layers = layout.layers().size();
        long pieces = 2L * layers * blockTokens;
        long bytes = (layout.bytes(blockTokens) + pieces - 1) / pieces;
        int heads = Math.toIntExact((bytes + MAX_HEAD_DIM - 1) / MAX_HEAD_DIM);
        int wide = Math.toIntExact((bytes + heads - 1) / heads);
        return new BlockShape(layers, 2, heads, wide, blockTokens, Dtype.INT8, AxisOrder.LAYER_KV_HEAD_TOKEN);
    }

    /// Returns the digest of a file. It reads all bytes, because a name or a date would not show a change.
    ///
    /// @return SHA-256 in 64 hexadecimal digits
    /// @throws IOException when the file cannot be read
    static String digest(Path file) throws IOException {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            try (OutputStream into = new DigestOutputStream(OutputStream.nullOutputStream(), digest)) {
                Files.copy(file, into);
            }
            return HexFormat.of().formatHex(digest.digest());
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException("every JVM has SHA-256", impossible);
        }
    }
}
