package io.kvcache.engines.llamacpp;

import static io.kvcache.engines.llamacpp.NativeSymbols.invoke;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;

/// What llama.cpp does in a context: computes tokens, and gives and takes the state of sequences.
///
/// **Threads.** One at a time for a context.
final class LlamaContextApi {

    /// `llama_batch`: a count, and pointers to tokens, embeddings, positions, counts of sequences, sequences
    /// and wishes for logits.
    private static final StructLayout BATCH = MemoryLayout.structLayout(
            JAVA_INT.withName("n_tokens"), MemoryLayout.paddingLayout(4), MemoryLayout.sequenceLayout(6, ADDRESS));

    private final MethodHandle defaults;
    private final MethodHandle make;
    private final MethodHandle free;
    private final MethodHandle tokens;
    private final MethodHandle batch;
    private final MethodHandle decode;
    private final MethodHandle logits;
    private final MethodHandle stateBytes;
    private final MethodHandle readState;
    private final MethodHandle writeState;
    private final MethodHandle remove;
    private final MethodHandle copy;

    LlamaContextApi(NativeSymbols library) {
        LlamaParameterStruct parameters = LlamaParameterStruct.CONTEXT;
        defaults = library.function(parameters.defaultsFunction(), parameters.layout());
        make = library.function("llama_init_from_model", ADDRESS, ADDRESS, parameters.layout());
        free = library.procedure("llama_free", ADDRESS);
        tokens = library.function("llama_n_ctx", JAVA_INT, ADDRESS);
        batch = library.function("llama_batch_get_one", BATCH, ADDRESS, JAVA_INT);
        decode = library.function("llama_decode", JAVA_INT, ADDRESS, BATCH);
        logits = library.function("llama_get_logits_ith", ADDRESS, ADDRESS, JAVA_INT);
        stateBytes = library.function("llama_state_seq_get_size", JAVA_LONG, ADDRESS, JAVA_INT);
        readState = library.function("llama_state_seq_get_data", JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT);
        writeState = library.function("llama_state_seq_set_data", JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT);
        remove = library.function("llama_kv_self_seq_rm", JAVA_BOOLEAN, ADDRESS, JAVA_INT, JAVA_INT, JAVA_INT);
        copy = library.procedure("llama_kv_self_seq_cp", ADDRESS, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT);
    }

    MemorySegment defaults(SegmentAllocator room) {
        return invoke(() -> (MemorySegment) defaults.invokeExact(room));
    }

    /// Makes a context of two sequences, so that a part of one can be given a number of its own.
    ///
    /// @param batch tokens that one call may compute
    /// @return the context, or null's address
    MemorySegment newContext(MemorySegment model, LlamaOptions options, int tokens, int batch) {
        LlamaParameterStruct struct = LlamaParameterStruct.CONTEXT;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment parameters = defaults(arena);
            parameters.set(JAVA_INT, struct.offset("n_ctx"), tokens);
            parameters.set(JAVA_INT, struct.offset("n_batch"), batch);
            parameters.set(JAVA_INT, struct.offset("n_ubatch"), batch);
            parameters.set(JAVA_INT, struct.offset("n_seq_max"), 2);
            parameters.set(JAVA_INT, struct.offset("n_threads"), options.threads());
            parameters.set(JAVA_INT, struct.offset("n_threads_batch"), options.threads());
            parameters.set(JAVA_BYTE, struct.offset("flash_attn"), (byte) (options.flashAttention() ? 1 : 0));
            return invoke(() -> (MemorySegment) make.invokeExact(model, parameters));
        }
    }

    void free(MemorySegment context) {
        invoke(() -> {
            free.invokeExact(context);
            return true;
        });
    }

    /// Tokens that it has room for.
    int contextTokens(MemorySegment context) {
        return invoke(() -> (int) tokens.invokeExact(context));
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

    /// What the model says after the last token that was computed; its own memory, until the next call.
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
            throw new IllegalStateException("llama.cpp does not forget tokens %d to %d".formatted(from, to));
        }
    }

    /// Has positions `[from, to)` of a sequence belong to another one as well; -1 for either end.
    void share(MemorySegment context, int sequence, int other, int from, int to) {
        invoke(() -> {
            copy.invokeExact(context, sequence, other, from, to);
            return true;
        });
    }
}
