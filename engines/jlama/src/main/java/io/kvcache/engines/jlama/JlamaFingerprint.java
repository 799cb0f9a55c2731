package io.kvcache.engines.jlama;

import com.github.tjake.jlama.safetensors.Config;
import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Locale;

/// What must be equal for one model's keys and values to be another's: two that differ in any of it have
/// different namespaces, so neither ever finds what the other stored.
///
/// The rows depend on who computed them, so engine, version and kernels belong to it. The processor does
/// not: the same kernels on one with wider vectors may add in another order, and give rows that differ in
/// their last bits.
///
/// @param model a name for people; it counts as well
/// @param build the engine's version and kernels
/// @param weights digest of configuration and weights
/// @param quantized type that activations are quantised to
/// @param rope first digits of a digest of the rotation of every position
/// @param layers of the model
/// @param kvHeads heads of keys and values in a layer
/// @param headDim elements of a head
/// @param dtype of an element
public record JlamaFingerprint(
        String model,
        String build,
        String weights,
        String quantized,
        String rope,
        int layers,
        int kvHeads,
        int headDim,
        Dtype dtype) {

    private static final int ROPE_BYTES = 16;

    /// The namespace of one tenant's blocks of a length.
    ///
    /// @param blockTokens tokens in a block
    /// @param tenant whose blocks these are; may be empty
    /// @param salt keeps users of a tenant apart; may be empty
    public Namespace namespace(int blockTokens, String tenant, String salt) {
        return Namespace.builder(model)
                .revision(weights)
                .dtype(dtype.name().toLowerCase(Locale.ROOT))
                .layout("jlama " + build + ", activations " + quantized + ", rope " + rope)
                .tenant(tenant)
                .salt(salt)
                .part(Part.full(shape(blockTokens)))
                .build();
    }

    BlockShape shape(int blockTokens) {
        return new BlockShape(layers, 2, kvHeads, headDim, blockTokens, dtype, AxisOrder.LAYER_KV_TOKEN_HEAD);
    }

    /// A digest of the angles that Jlama computed, whatever parameters they came from.
    static String rope(Config config) {
        if (config.ropeFreqs.isEmpty()) {
            return "none";
        }
        MessageDigest digest = WeightsDigest.sha256();
        float[][] table = config.ropeFreqs.get();
        ByteBuffer row = ByteBuffer.allocate(table[0].length * Float.BYTES);
        for (float[] angles : table) {
            row.clear();
            for (float angle : angles) {
                row.putFloat(angle);
            }
            digest.update(row.flip());
        }
        return HexFormat.of().formatHex(digest.digest(), 0, ROPE_BYTES);
    }
}
