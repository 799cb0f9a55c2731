package io.kvcache.engines.llamacpp;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.StructLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// The functions of llama.cpp that this adapter calls: about a model, and in a context, which computes tokens and
/// gives and takes the state of sequences.
///
/// **Threads.** Any for a model, one at a time for a context.
final class LlamaApi {

    private static final int TEXT_BYTES = 256;

    /// `llama_batch`: a count, and pointers to tokens, embeddings, positions, counts of sequences, sequences
    /// and wishes for logits.
    private static final StructLayout BATCH = MemoryLayout.structLayout(
            JAVA_INT.withName("n_tokens"), MemoryLayout.paddingLayout(4), MemoryLayout.sequenceLayout(6, ADDRESS));

    private final SymbolLookup library;
    private final List<String> missing = new ArrayList<>();
    private final MethodHandle initialize;
    private final MethodHandle setLog;
    private final MethodHandle modelDefaults;
    private final MethodHandle loadModel;
    private final MethodHandle freeModel;
    private final MethodHandle vocabulary;
    private final MethodHandle vocabularyTokens;
    private final MethodHandle vocabularyType;
    private final MethodHandle beginToken;
    private final MethodHandle addsBeginToken;
    private final MethodHandle isEndToken;
    private final MethodHandle tokenize;
    private final MethodHandle tokenPiece;
    private final MethodHandle chatTemplate;
    private final MethodHandle applyChatTemplate;
    private final MethodHandle trainedTokens;
    private final MethodHandle ropeType;
    private final MethodHandle ropeScale;
    private final MethodHandle metadataText;
    private final MethodHandle hasEncoder;
    private final MethodHandle isRecurrent;
    private final MethodHandle contextDefaults;
    private final MethodHandle newContext;
    private final MethodHandle freeContext;
    private final MethodHandle batch;
    private final MethodHandle decode;
    private final MethodHandle logits;
    private final MethodHandle stateBytes;
    private final MethodHandle readState;
    private final MethodHandle writeState;
    private final MethodHandle remove;
    private final MethodHandle shareSequence;

    LlamaApi(SymbolLookup library) {
        this.library = library;
        initialize = procedure("llama_backend_init");
        setLog = procedure("llama_log_set", ADDRESS, ADDRESS);
        LlamaParameterStruct model = LlamaParameterStruct.MODEL;
        modelDefaults = function(model.defaultsFunction(), model.layout());
        loadModel = function("llama_model_load_from_file", ADDRESS, ADDRESS, model.layout());
        freeModel = procedure("llama_model_free", ADDRESS);
        vocabulary = function("llama_model_get_vocab", ADDRESS, ADDRESS);
        vocabularyTokens = function("llama_vocab_n_tokens", JAVA_INT, ADDRESS);
        vocabularyType = function("llama_vocab_type", JAVA_INT, ADDRESS);
        beginToken = function("llama_vocab_bos", JAVA_INT, ADDRESS);
        addsBeginToken = function("llama_vocab_get_add_bos", JAVA_BOOLEAN, ADDRESS);
        isEndToken = function("llama_vocab_is_eog", JAVA_BOOLEAN, ADDRESS, JAVA_INT);
        tokenize = function(
                "llama_tokenize", JAVA_INT, ADDRESS, ADDRESS, JAVA_INT, ADDRESS, JAVA_INT, JAVA_BOOLEAN, JAVA_BOOLEAN);
        tokenPiece = function(
                "llama_token_to_piece", JAVA_INT, ADDRESS, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT, JAVA_BOOLEAN);
        chatTemplate = function("llama_model_chat_template", ADDRESS, ADDRESS, ADDRESS);
        applyChatTemplate = function(
                "llama_chat_apply_template", JAVA_INT, ADDRESS, ADDRESS, JAVA_LONG, JAVA_BOOLEAN, ADDRESS, JAVA_INT);
        trainedTokens = function("llama_model_n_ctx_train", JAVA_INT, ADDRESS);
        ropeType = function("llama_model_rope_type", JAVA_INT, ADDRESS);
        ropeScale = function("llama_model_rope_freq_scale_train", JAVA_FLOAT, ADDRESS);
        metadataText = function("llama_model_meta_val_str", JAVA_INT, ADDRESS, ADDRESS, ADDRESS, JAVA_LONG);
        hasEncoder = function("llama_model_has_encoder", JAVA_BOOLEAN, ADDRESS);
        isRecurrent = function("llama_model_is_recurrent", JAVA_BOOLEAN, ADDRESS);
        LlamaParameterStruct context = LlamaParameterStruct.CONTEXT;
        contextDefaults = function(context.defaultsFunction(), context.layout());
        newContext = function("llama_init_from_model", ADDRESS, ADDRESS, context.layout());
        freeContext = procedure("llama_free", ADDRESS);
        batch = function("llama_batch_get_one", BATCH, ADDRESS, JAVA_INT);
        decode = function("llama_decode", JAVA_INT, ADDRESS, BATCH);
        logits = function("llama_get_logits_ith", ADDRESS, ADDRESS, JAVA_INT);
        stateBytes = function("llama_state_seq_get_size", JAVA_LONG, ADDRESS, JAVA_INT);
        readState = function("llama_state_seq_get_data", JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT);
        writeState = function("llama_state_seq_set_data", JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT);
        remove = function("llama_kv_self_seq_rm", JAVA_BOOLEAN, ADDRESS, JAVA_INT, JAVA_INT, JAVA_INT);
        shareSequence = procedure("llama_kv_self_seq_cp", ADDRESS, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT);
    }

    /// A function that returns something.
    private MethodHandle function(String name, MemoryLayout returned, MemoryLayout... arguments) {
        return bind(name, FunctionDescriptor.of(returned, arguments));
    }

    /// A function that returns nothing.
    private MethodHandle procedure(String name, MemoryLayout... arguments) {
        return bind(name, FunctionDescriptor.ofVoid(arguments));
    }

    @SuppressWarnings("restricted") // Signatures as in llama.h of the build that the parameters are checked for.
    private MethodHandle bind(String name, FunctionDescriptor signature) {
        MemorySegment function = library.find(name).orElse(MemorySegment.NULL);
        if (function.equals(MemorySegment.NULL)) {
            missing.add(name);
            return MethodHandles.zero(void.class);
        }
        return Linker.nativeLinker().downcallHandle(function, signature);
    }

    /// Functions that the library lacks. To be looked at before anything is called.
    List<String> missing() {
        return missing;
    }

    private interface NativeCall<T> {

        T call() throws Throwable;
    }

    /// Calls, as C functions throw nothing.
    private static <T> T invoke(NativeCall<T> call) {
        try {
            return call.call();
        } catch (Throwable thrown) {
            throw new AssertionError("a C function does not throw", thrown);
        }
    }

    /// Starts the library.
    ///
    /// @param log what it calls with its news
    void initialize(MemorySegment log) {
        invoke(() -> {
            setLog.invokeExact(log, MemorySegment.NULL);
            initialize.invokeExact();
            return true;
        });
    }

    MemorySegment modelDefaults(SegmentAllocator room) {
        return invoke(() -> (MemorySegment) modelDefaults.invokeExact(room));
    }

    /// Loads a file of weights as the library does by default: mapped, on the processor.
    ///
    /// @return the model, or null's address
    MemorySegment loadModel(String file) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment parameters = modelDefaults(arena);
            MemorySegment path = arena.allocateFrom(file);
            return invoke(() -> (MemorySegment) loadModel.invokeExact(path, parameters));
        }
    }

    void freeModel(MemorySegment model) {
        invoke(() -> {
            freeModel.invokeExact(model);
            return true;
        });
    }

    int vocabularySize(MemorySegment model) {
        MemorySegment words = vocabulary(model);
        return invoke(() -> (int) vocabularyTokens.invokeExact(words));
    }

    /// Returns a model's vocabulary, which is the model's memory.
    MemorySegment vocabulary(MemorySegment model) {
        return invoke(() -> (MemorySegment) vocabulary.invokeExact(model));
    }

    /// Returns `enum llama_vocab_type`: 0 for a model without a tokenizer, with which the functions of texts below
    /// would end the process.
    int vocabularyType(MemorySegment words) {
        return invoke(() -> (int) vocabularyType.invokeExact(words));
    }

    /// Returns the token that marks the beginning of a text; negative where there is none.
    int beginToken(MemorySegment words) {
        return invoke(() -> (int) beginToken.invokeExact(words));
    }

    /// Returns whether texts begin with the [token][#beginToken] of that.
    boolean addsBeginToken(MemorySegment words) {
        return invoke(() -> (boolean) addsBeginToken.invokeExact(words));
    }

    /// Returns whether an answer ends with a token.
    boolean isEndToken(MemorySegment words, int token) {
        return invoke(() -> (boolean) isEndToken.invokeExact(words, token));
    }

    /// Writes the tokens of a text. The text of a special token becomes that token.
    ///
    /// @param text UTF-8
    /// @param into a whole number of int32
    /// @param marked whether the model's marks of beginning and end are added
    /// @return tokens written; negative, how many there are, when they are too many
    int tokenize(MemorySegment words, MemorySegment text, MemorySegment into, boolean marked) {
        int bytes = Math.toIntExact(text.byteSize());
        int room = Math.toIntExact(into.byteSize() / Integer.BYTES);
        return invoke(() -> (int) tokenize.invokeExact(words, text, bytes, into, room, marked, true));
    }

    /// Writes the bytes of a token, which may be a part of a character. A token that controls the model has none.
    ///
    /// @return bytes written; negative, how many there are, when they are too many
    int tokenPiece(MemorySegment words, int token, MemorySegment into) {
        int room = Math.toIntExact(into.byteSize());
        return invoke(() -> (int) tokenPiece.invokeExact(words, token, into, room, 0, false));
    }

    /// Returns the model's template of chats as a C string, or null's address.
    MemorySegment chatTemplate(MemorySegment model) {
        return invoke(() -> (MemorySegment) chatTemplate.invokeExact(model, MemorySegment.NULL));
    }

    /// Writes a chat as its template has it, up to where the answer begins.
    ///
    /// @param messages an array of `struct llama_chat_message`: role and content as C strings
    /// @param into UTF-8 without a zero at its end, cut off where it is longer
    /// @return bytes there are; negative when the library does not know the template
    int applyChatTemplate(MemorySegment template, MemorySegment messages, int count, MemorySegment into) {
        int room = Math.toIntExact(into.byteSize());
        return invoke(() -> (int) applyChatTemplate.invokeExact(template, messages, (long) count, true, into, room));
    }

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

    Optional<String> metadata(MemorySegment model, String key) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = arena.allocateFrom(key);
            MemorySegment into = arena.allocate(TEXT_BYTES);
            int bytes = invoke(() -> (int) metadataText.invokeExact(model, name, into, (long) TEXT_BYTES));
            return bytes < 0 ? Optional.empty() : Optional.of(into.getString(0, StandardCharsets.UTF_8));
        }
    }

    /// Returns whether each token has keys and values of its own, which a look at all tokens before it gives.
    boolean hasPerTokenCache(MemorySegment model) {
        return !invoke(() -> (boolean) hasEncoder.invokeExact(model))
                && !invoke(() -> (boolean) isRecurrent.invokeExact(model));
    }

    MemorySegment contextDefaults(SegmentAllocator room) {
        return invoke(() -> (MemorySegment) contextDefaults.invokeExact(room));
    }

    /// Makes a context of two sequences, so that a part of one can be given a number of its own.
    ///
    /// @param batch tokens that one call may compute
    /// @return the context, or null's address
    MemorySegment newContext(MemorySegment model, LlamaOptions options, int tokens, int batch) {
        LlamaParameterStruct struct = LlamaParameterStruct.CONTEXT;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment parameters = contextDefaults(arena);
            parameters.set(JAVA_INT, struct.offset("n_ctx"), tokens);
            parameters.set(JAVA_INT, struct.offset("n_batch"), batch);
            parameters.set(JAVA_INT, struct.offset("n_ubatch"), batch);
            parameters.set(JAVA_INT, struct.offset("n_seq_max"), 2);
            parameters.set(JAVA_INT, struct.offset("n_threads"), options.threads());
            parameters.set(JAVA_INT, struct.offset("n_threads_batch"), options.threads());
            parameters.set(JAVA_BYTE, struct.offset("flash_attn"), (byte) (options.flashAttention() ? 1 : 0));
            return invoke(() -> (MemorySegment) newContext.invokeExact(model, parameters));
        }
    }

    void freeContext(MemorySegment context) {
        invoke(() -> {
            freeContext.invokeExact(context);
            return true;
        });
    }

    /// Computes tokens that follow on those of sequence 0.
    ///
    /// @param some a whole number of int32
    /// @return 0, or llama.cpp's number of what went wrong
    int decode(MemorySegment context, MemorySegment some) {
        try (Arena arena = Arena.ofConfined()) {
            int count = (int) (some.byteSize() / Integer.BYTES);
            MemorySegment one = invoke(() -> (MemorySegment) batch.invokeExact((SegmentAllocator) arena, some, count));
            return invoke(() -> (int) decode.invokeExact(context, one));
        }
    }

    /// Returns the logits after the last computed token, in the library's own memory, valid until the next call.
    ///
    /// @param count floats there are: the vocabulary
    @SuppressWarnings("restricted") // As many as llama.h says: one for each token of the vocabulary.
    MemorySegment logits(MemorySegment context, int count) {
        MemorySegment all = invoke(() -> (MemorySegment) logits.invokeExact(context, -1));
        return all.equals(MemorySegment.NULL) ? all : all.reinterpret((long) count * Float.BYTES);
    }

    long stateBytes(MemorySegment context, int sequence) {
        return invoke(() -> (long) stateBytes.invokeExact(context, sequence));
    }

    /// Writes the state of a sequence into native memory.
    ///
    /// @return bytes written; 0 when there was no room
    long readState(MemorySegment context, int sequence, MemorySegment into) {
        return invoke(() -> (long) readState.invokeExact(context, into, into.byteSize(), sequence));
    }

    /// Makes a sequence one whose state is in native memory, and which is what [#readState] wrote.
    ///
    /// @return bytes read; 0 when it was refused
    long writeState(MemorySegment context, int sequence, MemorySegment from) {
        return invoke(() -> (long) writeState.invokeExact(context, from, from.byteSize(), sequence));
    }

    /// Forgets positions `[from, to)` of a sequence; -1 for either end.
    void remove(MemorySegment context, int sequence, int from, int to) {
        boolean all = invoke(() -> (boolean) remove.invokeExact(context, sequence, from, to));
        if (!all) {
            throw new IllegalStateException("llama.cpp does not forget tokens %s to %s".formatted(from, to));
        }
    }

    /// Has positions `[from, to)` of a sequence belong to another one as well; -1 for either end.
    void share(MemorySegment context, int sequence, int other, int from, int to) {
        invoke(() -> {
            shareSequence.invokeExact(context, sequence, other, from, to);
            return true;
        });
    }
}
