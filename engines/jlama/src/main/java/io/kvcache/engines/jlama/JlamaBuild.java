package io.kvcache.engines.jlama;

import com.github.tjake.jlama.model.AbstractModel;
import com.github.tjake.jlama.tensor.operations.TensorOperationsProvider;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Properties;
import java.util.Set;

/// Which Jlama is on the class path, and what computes in it.
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
            throw new IllegalStateException("jlama-core is " + version + "; this adapter knows how these keep keys and"
                    + " values: " + String.join(", ", KNOWN));
        }
    }

    /// The one here.
    ///
    /// @throws IllegalStateException when the JVM lacks the module that Jlama needs, or this adapter does
    ///     not know this version
    static JlamaBuild detect() {
        requireVectors();
        return new JlamaBuild(detectVersion(), TensorOperationsProvider.get().name());
    }

    static void requireVectors() {
        if (ModuleLayer.boot().findModule(VECTORS).isEmpty()) {
            throw new IllegalStateException("Jlama needs the JVM to be started with --add-modules " + VECTORS);
        }
    }

    /// Whether equal input gives equal bits however it is cut into batches. The JVM's vectors do not
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
