package io.kvcache.engines.jlama;

import com.github.tjake.jlama.model.AbstractModel;
import com.github.tjake.jlama.safetensors.Config;
import com.github.tjake.jlama.tensor.operations.TensorOperationsProvider;
import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Stream;

/// The properties that must be equal for two models to share keys and values. Two that differ in any of them have
/// different namespaces, so neither finds what the other stored.
///
/// The rows depend on what computed them, so engine, version and kernels belong to it. The processor does
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

    /// The digest of a model's files: SHA-256 over the name and the SHA-256 of its configuration and of each file
    /// of weights, in the order of their names.
    ///
    /// All bytes are read, because a name or a date would not tell that weights have changed, and then keys
    /// and values of other weights would be taken for these.
    static final class WeightsDigest {

        private static final int BUFFER_BYTES = 1 << 20;

        private WeightsDigest() {}

        /// @return 64 hexadecimal digits
        /// @throws IOException when a file cannot be read, or the directory has no weights
        static String of(Path directory) throws IOException {
            List<Path> files;
            try (Stream<Path> all = Files.list(directory)) {
                files = all.filter(WeightsDigest::isPartOfModel).sorted().toList();
            }
            if (files.stream().noneMatch(WeightsDigest::isWeights)) {
                throw new IOException(directory + " has no *.safetensors");
            }
            MessageDigest whole = sha256();
            try {
                List<byte[]> digests =
                        files.parallelStream().map(WeightsDigest::digest).toList();
                for (int i = 0; i < files.size(); i++) {
                    whole.update(name(files.get(i)).getBytes(StandardCharsets.UTF_8));
                    whole.update((byte) 0);
                    whole.update(digests.get(i));
                }
            } catch (UncheckedIOException unreadable) {
                throw unreadable.getCause();
            }
            return HexFormat.of().formatHex(whole.digest());
        }

        private static boolean isPartOfModel(Path file) {
            return isWeights(file) || name(file).equals("config.json");
        }

        private static boolean isWeights(Path file) {
            return name(file).endsWith(".safetensors");
        }

        private static String name(Path file) {
            return String.valueOf(file.getFileName());
        }

        private static byte[] digest(Path file) {
            MessageDigest digest = sha256();
            ByteBuffer buffer = ByteBuffer.allocate(BUFFER_BYTES);
            try (FileChannel channel = FileChannel.open(file)) {
                while (channel.read(buffer) >= 0) {
                    digest.update(buffer.flip());
                    buffer.clear();
                }
            } catch (IOException unreadable) {
                throw new UncheckedIOException(unreadable);
            }
            return digest.digest();
        }

        static MessageDigest sha256() {
            try {
                return MessageDigest.getInstance("SHA-256");
            } catch (NoSuchAlgorithmException impossible) {
                throw new IllegalStateException("every JVM has SHA-256", impossible);
            }
        }
    }

    /// The version of Jlama on the class path, and its implementation of the operations.
    ///
    /// @param version of jlama-core
    /// @param operations Jlama's name of what multiplies: its native library, or the JVM's vectors
    record JlamaBuild(String version, String operations) {

        /// Those of which tests have shown how they keep keys and values.
        static final Set<String> KNOWN = Set.of("0.8.4");

        private static final String VECTORS = "jdk.incubator.vector";
        private static final String POM = "/META-INF/maven/com.github.tjake/jlama-core/pom.properties";

        JlamaBuild {
            if (!KNOWN.contains(version)) {
                throw new IllegalStateException("jlama-core is " + version
                        + "; this adapter knows how these keep keys and" + " values: " + String.join(", ", KNOWN));
            }
        }

        /// The one here.
        ///
        /// @throws IllegalStateException when the JVM lacks the module that Jlama needs, or this adapter does
        ///     not know this version
        static JlamaBuild detect() {
            requireVectors();
            return new JlamaBuild(
                    detectVersion(), TensorOperationsProvider.get().name());
        }

        static void requireVectors() {
            if (ModuleLayer.boot().findModule(VECTORS).isEmpty()) {
                throw new IllegalStateException("Jlama needs the JVM to be started with --add-modules " + VECTORS);
            }
        }

        /// Returns whether equal input gives equal bits however it is cut into batches. The JVM's vectors do not
        /// promise it: compiled code may add in another order than interpreted code.
        boolean isExact() {
            return operations.startsWith("Native");
        }

        private static String detectVersion() {
            Properties properties = new Properties();
            try (InputStream in = AbstractModel.class.getResourceAsStream(POM)) {
                if (in != null) {
                    properties.load(in);
                }
            } catch (IOException unreadable) {
                throw new UncheckedIOException(unreadable);
            }
            return properties.getProperty("version", "of an unknown version (it has no " + POM + ")");
        }
    }
}
