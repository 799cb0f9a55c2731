package io.kvcache.engines.jlama;

import com.github.tjake.jlama.model.AbstractModel;
import com.github.tjake.jlama.model.ModelSupport;
import com.github.tjake.jlama.safetensors.Config;
import com.github.tjake.jlama.safetensors.DType;
import com.github.tjake.jlama.safetensors.prompt.PromptContext;
import com.github.tjake.jlama.tensor.KvBufferCache;
import com.github.tjake.jlama.util.PhysicalCoreExecutor;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.engines.generator.ChatMessage;
import io.kvcache.engines.generator.EngineSequence;
import io.kvcache.engines.generator.TextDecoder;
import io.kvcache.engines.generator.TextModel;
import io.kvcache.engines.jlama.JlamaFingerprint.JlamaBuild;
import io.kvcache.engines.jlama.JlamaFingerprint.WeightsDigest;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;

/// A model that Jlama has loaded, and what identifies the keys and values that it computes.
///
/// **Ownership.** The caller closes it, after the generators over it.
///
/// **Threads.** Jlama computes one sequence at a time in a model; a
/// [io.kvcache.engines.generator.PrefixCachedGenerator] sees to that,
/// so have one generator over a model.
public final class JlamaModel implements TextModel, AutoCloseable {

    private static final Logger LOG = System.getLogger(JlamaModel.class.getName());

    /// For rows of kernels that are not exact; a row of another token is off by about its own size.
    private static final double TOLERANCE = 1e-3;

    private final AbstractModel engine;

    /// Our own, beside the model's: its pages stay in memory and have no files.
    private final KvBufferCache buffers;

    private final JlamaFingerprint fingerprint;
    private final boolean exact;

    private JlamaModel(AbstractModel engine, JlamaFingerprint fingerprint, boolean exact) {
        this.engine = engine;
        buffers = new KvBufferCache(engine);
        this.fingerprint = fingerprint;
        this.exact = exact;
    }

    /// Loads a model and reads all of its files once for their digest.
    ///
    /// @param directory has `config.json`, `tokenizer.json` and `*.safetensors`, as Hugging Face lays
    ///     them out
    /// @throws IOException when a file is missing or cannot be read
    /// @throws IllegalStateException when the JVM has no vectors, or this adapter does not know this
    ///     Jlama
    public static JlamaModel load(Path directory, JlamaOptions options) throws IOException {
        for (String file : new String[] {"config.json", "tokenizer.json"}) {
            if (!Files.isReadable(directory.resolve(file))) {
                throw new IOException(directory + " is not the directory of a model: it has no readable " + file);
            }
        }
        JlamaBuild.requireVectors();
        String weights = WeightsDigest.of(directory);
        setThreadCount(options.threads());
        AbstractModel engine = ModelSupport.loadModel(
                directory.toFile(),
                null,
                options.workingType(),
                options.quantizedType(),
                Optional.empty(),
                Optional.empty());
        return of(
                engine,
                String.valueOf(directory.toAbsolutePath().normalize().getFileName()),
                weights,
                options.quantizedType());
    }

    /// Jlama's pool takes a number of threads once, before its first use.
    private static void setThreadCount(int threads) {
        try {
            PhysicalCoreExecutor.overrideThreadCount(threads);
        } catch (IllegalStateException started) {
            LOG.log(Level.DEBUG, "Jlama computes already, by as many threads as it was told first", started);
        }
    }

    /// Takes a model that the caller has loaded, and owns it from now on.
    ///
    /// @param name for people
    /// @param weights tells this model's weights from any others, such as a digest of them
    /// @param quantized as it was given to Jlama
    public static JlamaModel of(AbstractModel engine, String name, String weights, DType quantized) {
        JlamaBuild build = JlamaBuild.detect();
        Config config = engine.getConfig();
        if (config.dctx().numberOfLayers != config.numberOfLayers || config.dctx().kvSegmentLength != config.kvLength) {
            throw new IllegalArgumentException("the model is distributed: this process computes a part of each row");
        }
        JlamaFingerprint fingerprint = new JlamaFingerprint(
                name,
                build.version() + " " + build.operations(),
                weights,
                quantized.name().toLowerCase(Locale.ROOT),
                JlamaFingerprint.rope(config),
                config.numberOfLayers,
                config.numberOfKeyValueHeads,
                config.headSize,
                dtype(engine.getWorkingDType()));
        return new JlamaModel(engine, fingerprint, build.isExact());
    }

    private static Dtype dtype(DType working) {
        return switch (working) {
            case F32 -> Dtype.F32;
            case BF16 -> Dtype.BF16;
            default ->
                throw new IllegalArgumentException(
                        "keys and values are of type " + working + "; this adapter takes F32 and BF16");
        };
    }

    /// Jlama's own model, for what this adapter does not do.
    public AbstractModel engine() {
        return engine;
    }

    @Override
    public JlamaFingerprint fingerprint() {
        return fingerprint;
    }

    @Override
    public Namespace namespace(int blockTokens, String tenant, String salt) {
        return fingerprint.namespace(blockTokens, tenant, salt);
    }

    @Override
    public double tolerance() {
        return exact ? 0 : TOLERANCE;
    }

    @Override
    public boolean storesAnswers() {
        return true;
    }

    @Override
    public EngineSequence newSequence(int blockTokens, float temperature, long seed) {
        return new JlamaSequence(engine, buffers, fingerprint.shape(blockTokens), temperature, seed);
    }

    /// Tokens that a sequence may have. Jlama 0.8.4 reads its table of rotations two rows further on for
    /// each head of keys (of queries, where they are as many), so it fails that close before the end of a
    /// model's context.
    @Override
    public int contextLength() {
        Config config = engine.getConfig();
        return config.contextLength - (config.ropeFreqs.isPresent() ? 2 * (config.numberOfKeyValueHeads - 1) : 0);
    }

    @Override
    public int vocabulary() {
        return engine.getConfig().vocabularySize;
    }

    @Override
    public String name() {
        return fingerprint.model();
    }

    /// Jlama's tokenizers keep nothing of what they encode.
    @Override
    public int[] encode(String text) {
        return engine.encodePrompt(PromptContext.of(text));
    }

    @Override
    public int[] encodeContinuation(String text) {
        int[] tokens = encode(text);
        boolean marked = tokens.length > 0 && tokens[0] == engine.getConfig().bosToken;
        return marked ? Arrays.copyOfRange(tokens, 1, tokens.length) : tokens;
    }

    @Override
    public int[] encode(List<ChatMessage> messages) {
        return engine.encodePrompt(JlamaChatPrompt.of(engine.promptSupport(), messages));
    }

    @Override
    public TextDecoder newDecoder() {
        return new JlamaTextDecoder(engine.getTokenizer());
    }

    @Override
    public Set<Integer> stopTokens() {
        return Set.copyOf(engine.getConfig().eosTokens);
    }

    @Override
    public void close() {
        buffers.close();
        engine.close();
    }
}
