package io.kvcache.engines.llamacpp;

import static io.kvcache.engines.llamacpp.NativeSymbols.invoke;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/// What llama.cpp can be asked about a model.
///
/// **Threads.** Any.
final class LlamaModelApi {

    private static final int TEXT_BYTES = 256;

    private final MethodHandle defaults;
    private final MethodHandle load;
    private final MethodHandle free;
    private final MethodHandle vocabulary;
    private final MethodHandle tokens;
    private final MethodHandle trainedTokens;
    private final MethodHandle ropeType;
    private final MethodHandle ropeScale;
    private final MethodHandle text;
    private final MethodHandle hasEncoder;
    private final MethodHandle isRecurrent;

    LlamaModelApi(NativeSymbols library) {
        LlamaParameterStruct parameters = LlamaParameterStruct.MODEL;
        defaults = library.function(parameters.defaultsFunction(), parameters.layout());
        load = library.function("llama_model_load_from_file", ADDRESS, ADDRESS, parameters.layout());
        free = library.procedure("llama_model_free", ADDRESS);
        vocabulary = library.function("llama_model_get_vocab", ADDRESS, ADDRESS);
        tokens = library.function("llama_vocab_n_tokens", JAVA_INT, ADDRESS);
        trainedTokens = library.function("llama_model_n_ctx_train", JAVA_INT, ADDRESS);
        ropeType = library.function("llama_model_rope_type", JAVA_INT, ADDRESS);
        ropeScale = library.function("llama_model_rope_freq_scale_train", JAVA_FLOAT, ADDRESS);
        text = library.function("llama_model_meta_val_str", JAVA_INT, ADDRESS, ADDRESS, ADDRESS, JAVA_LONG);
        hasEncoder = library.function("llama_model_has_encoder", JAVA_BOOLEAN, ADDRESS);
        isRecurrent = library.function("llama_model_is_recurrent", JAVA_BOOLEAN, ADDRESS);
    }

    MemorySegment defaults(SegmentAllocator room) {
        return invoke(() -> (MemorySegment) defaults.invokeExact(room));
    }

    /// Loads a file of weights as the library does by default: mapped, on the processor.
    ///
    /// @return the model, or null's address
    MemorySegment load(String file) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment parameters = defaults(arena);
            MemorySegment path = arena.allocateFrom(file);
            return invoke(() -> (MemorySegment) load.invokeExact(path, parameters));
        }
    }

    void free(MemorySegment model) {
        invoke(() -> {
            free.invokeExact(model);
            return true;
        });
    }

    int vocabularySize(MemorySegment model) {
        return invoke(() -> {
            MemorySegment words = (MemorySegment) vocabulary.invokeExact(model);
            return (int) tokens.invokeExact(words);
        });
    }

    /// Tokens of the longest sequence that it was trained with.
    int trainedTokens(MemorySegment model) {
        return invoke(() -> (int) trainedTokens.invokeExact(model));
    }

    /// How positions turn keys, in one line.
    String describeRope(MemorySegment model) {
        int type = invoke(() -> (int) ropeType.invokeExact(model));
        float scale = invoke(() -> (float) ropeScale.invokeExact(model));
        String base = metadata(model, "general.architecture")
                .flatMap(name -> metadata(model, name + ".rope.freq_base"))
                .orElse("as built");
        return "type " + type + " base " + base + " scale " + scale;
    }

    /// What the file says under a key.
    Optional<String> metadata(MemorySegment model, String key) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = arena.allocateFrom(key);
            MemorySegment into = arena.allocate(TEXT_BYTES);
            int bytes = invoke(() -> (int) text.invokeExact(model, name, into, (long) TEXT_BYTES));
            return bytes < 0 ? Optional.empty() : Optional.of(into.getString(0, StandardCharsets.UTF_8));
        }
    }

    /// Whether each token has keys and values of its own, which a look at all tokens before it gives.
    boolean hasPerTokenCache(MemorySegment model) {
        return !invoke(() -> (boolean) hasEncoder.invokeExact(model))
                && !invoke(() -> (boolean) isRecurrent.invokeExact(model));
    }
}
