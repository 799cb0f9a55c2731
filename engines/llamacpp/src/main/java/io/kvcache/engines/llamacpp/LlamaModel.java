package io.kvcache.engines.llamacpp;

import io.kvcache.core.identity.Namespace;
import io.kvcache.engines.generator.ChatMessage;
import io.kvcache.engines.generator.EngineSequence;
import io.kvcache.engines.generator.TextDecoder;
import io.kvcache.engines.generator.TextModel;
import io.kvcache.engines.llamacpp.LlamaLibrary.UnsupportedLlamaException;
import io.kvcache.engines.llamacpp.LlamaSequence.TokenSampler;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// A model that llama.cpp has loaded, and what identifies the state of its sequences.
///
/// **Texts.** The tokenizer and the template of chats are those in the model's file, as llama.cpp applies them. The
/// text of a special token, such as `</s>`, becomes that token, in a message as well. A tokenizer that puts a space
/// before every text puts one before a continuation too. llama.cpp knows templates by their look: it runs none.
///
/// **Memory.** Each sequence that is computed, or waits for being stored, has a context of its own with room
/// for all tokens of the model's context. They are made when they are needed and used again.
///
/// **Ownership.** The caller closes it, after all that uses it.
///
/// **Threads.** Any.
public final class LlamaModel implements TextModel, AutoCloseable {

    private static final byte[] MAGIC = "GGUF".getBytes(StandardCharsets.US_ASCII);

    private final LlamaLibrary library;
    private final LlamaOptions options;
    private final MemorySegment model;
    private final int vocabulary;
    private final int contextTokens;
    private final LlamaStateLayout layout;
    private final LlamaFingerprint fingerprint;
    private final @Nullable LlamaTokenizer tokenizer;

    /// Contexts that are not in use, empty. Guarded by itself.
    private final Deque<LlamaContext> idle = new ArrayDeque<>();

    private LlamaModel(LlamaLibrary library, MemorySegment model, LlamaOptions options, String name, String weights) {
        this.library = library;
        this.model = model;
        this.options = options;
        LlamaApi calls = library.api();
        Optional<String> split = calls.metadata(model, "split.count");
        if (!calls.hasPerTokenCache(model) || !split.orElse("1").equals("1")) {
            throw new UnsupportedLlamaException(
                    name,
                    split.isPresent()
                            ? "the model is split into " + split.get() + " files, of which one was read"
                            : "the model keeps no keys and values by token");
        }
        vocabulary = calls.vocabularySize(model);
        int trained = calls.trainedTokens(model);
        contextTokens = options.contextTokens() == 0 ? trained : options.contextTokens();
        layout = probeLayout(name);
        fingerprint =
                new LlamaFingerprint(name, library.build(), weights, layout.describe(), calls.describeRope(model));
        tokenizer = LlamaTokenizer.isPresent(calls, model) ? new LlamaTokenizer(calls, model, name) : null;
    }

    /// Loads a model, reads all of its file once for a digest, and looks at the state of one token.
    ///
    /// @param file a GGUF file
    /// @throws IOException when the file cannot be read, or llama.cpp finds no model in it
    /// @throws UnsupportedLlamaException when the library keeps state otherwise than this adapter knows, or
    ///     the model has no keys and values by token
    public static LlamaModel load(LlamaLibrary library, Path file, LlamaOptions options) throws IOException {
        if (!Files.isRegularFile(file) || !Files.isReadable(file)) {
            throw new IOException(file + " is not a readable file, so it cannot be a model: that is one GGUF file");
        }
        requireGguf(file);
        String weights = LlamaFingerprint.digest(file);
        MemorySegment model = library.api().loadModel(file.toAbsolutePath().toString());
        if (model.equals(MemorySegment.NULL)) {
            throw new IOException(file + " is not a model that llama.cpp can load; the log says why");
        }
        try {
            return new LlamaModel(library, model, options, String.valueOf(file.getFileName()), weights);
        } catch (RuntimeException refused) {
            library.api().freeModel(model);
            throw refused;
        }
    }

    /// Before all of a large file is read.
    private static void requireGguf(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            if (!Arrays.equals(in.readNBytes(MAGIC.length), MAGIC)) {
                throw new IOException(file + " is not a GGUF file: it does not begin with GGUF");
            }
        }
    }

    /// Has one token computed and reads what its state looks like.
    private LlamaStateLayout probeLayout(String name) {
        try (LlamaContext context = newContext();
                Arena arena = Arena.ofConfined()) {
            context.decode(new int[] {0}, 0, 1);
            MemorySegment state = arena.allocate(context.stateBytes(0, 1));
            context.copyOut(0, 1, state);
            return LlamaStateLayout.read(state, name + " in " + library);
        }
    }

    @Override
    public LlamaFingerprint fingerprint() {
        return fingerprint;
    }

    @Override
    public int contextLength() {
        return contextTokens;
    }

    @Override
    public int vocabulary() {
        return vocabulary;
    }

    /// @throws IllegalArgumentException for blocks of 1 token: a prompt of 1 token is computed otherwise
    @Override
    public Namespace namespace(int blockTokens, String tenant, String salt) {
        if (blockTokens < 2) {
            throw new IllegalArgumentException(
                    "blockTokens is " + blockTokens + "; with llama.cpp it takes 2 and more");
        }
        return fingerprint.namespace(LlamaFingerprint.shape(layout, blockTokens), tenant, salt);
    }

    @Override
    public double tolerance() {
        return 0;
    }

    /// They are not: llama.cpp computes one token by other kernels than many, which add in another order.
    @Override
    public boolean storesAnswers() {
        return false;
    }

    @Override
    public EngineSequence newSequence(int blockTokens, float temperature, long seed) {
        return new LlamaSequence(this, blockTokens, new TokenSampler(temperature, seed));
    }

    @Override
    public String name() {
        return fingerprint.model();
    }

    /// Returns whether the model's file has a tokenizer. Without one, the model takes and gives tokens only.
    public boolean hasTokenizer() {
        return tokenizer != null;
    }

    private LlamaTokenizer tokenizer() {
        if (tokenizer == null) {
            throw new IllegalStateException(name() + " has no tokenizer in its file, so it takes tokens only");
        }
        return tokenizer;
    }

    @Override
    public int[] encode(String text) {
        return tokenizer().encode(text);
    }

    @Override
    public int[] encodeContinuation(String text) {
        return tokenizer().encodeContinuation(text);
    }

    @Override
    public int[] encode(List<ChatMessage> messages) {
        return tokenizer().encode(messages);
    }

    @Override
    public TextDecoder newDecoder() {
        return tokenizer().newDecoder();
    }

    @Override
    public Set<Integer> stopTokens() {
        return tokenizer().stopTokens();
    }

    LlamaStateLayout layout() {
        return layout;
    }

    /// Lends a context without tokens, until it is [given back][#returnContext].
    ///
    /// @throws IllegalStateException when none is idle and llama.cpp cannot make another
    LlamaContext borrowContext() {
        @Nullable LlamaContext free;
        synchronized (idle) {
            free = idle.poll();
        }
        return free == null ? newContext() : free;
    }

    /// Returns a new context, which the caller closes.
    LlamaContext newContext() {
        return new LlamaContext(library, model, options, contextTokens);
    }

    void returnContext(LlamaContext context) {
        context.truncate(0);
        synchronized (idle) {
            idle.push(context);
        }
    }

    @Override
    public void close() {
        synchronized (idle) {
            idle.forEach(LlamaContext::close);
            idle.clear();
        }
        library.api().freeModel(model);
    }
}
