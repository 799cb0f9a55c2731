package io.kvcache.engines.llamacpp;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Room for one sequence in llama.cpp: computes its tokens and lets parts of its state in and out.
///
/// The state of some of the tokens is that of a second sequence which shares them for a moment: llama.cpp
/// then writes it as it writes any, whatever the order of its memory.
///
/// **Ownership.** The caller closes it, before the model.
///
/// **Threads.** One at a time.
final class LlamaContext implements AutoCloseable {

    /// Tokens that are computed together.
    private static final int MAX_BATCH_TOKENS = 512;

    private static final int MAIN_SEQUENCE = 0;
    private static final int STAGING_SEQUENCE = 1;
    private static final int ALL_POSITIONS = -1;

    private final LlamaApi calls;
    private final MemorySegment context;
    private final int vocabulary;
    private final int batch;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment tokens;

    /// @param model of the library
    /// @param contextTokens that the sequence may have
    /// @throws IllegalStateException when llama.cpp cannot make the context, perhaps for lack of memory
    LlamaContext(LlamaLibrary library, MemorySegment model, LlamaOptions options, int contextTokens) {
        calls = library.api();
        batch = Math.min(MAX_BATCH_TOKENS, contextTokens);
        vocabulary = calls.vocabularySize(model);
        context = calls.newContext(model, options, contextTokens, batch);
        if (context.equals(MemorySegment.NULL)) {
            arena.close();
            throw new IllegalStateException(
                    "llama.cpp cannot make a context of " + contextTokens + " tokens: memory may be short");
        }
        tokens = arena.allocate(JAVA_INT, batch);
    }

    /// Computes tokens `[from, to)` of a sequence. The context has the state of those before.
    ///
    /// A token that is computed alone goes through other kernels than one of many, and its last bits may
    /// differ. So no batch leaves a single token for the next one, unless it has at most two itself.
    ///
    /// @throws IllegalArgumentException when the model does not have a token; llama.cpp would end the process
    void decode(int[] sequence, int from, int to) {
        for (int i = from; i < to; i++) {
            if (sequence[i] < 0 || sequence[i] >= vocabulary) {
                throw new IllegalArgumentException("token %s, at %s, is not a token of this model: 0 to %s"
                        .formatted(sequence[i], i, vocabulary - 1));
            }
        }
        int at = from;
        while (at < to) {
            int count = Math.min(batch, to - at);
            if (to - at - count == 1 && count > 2) {
                count--;
            }
            MemorySegment.copy(sequence, at, tokens, JAVA_INT, 0, count);
            int result = calls.decode(context, tokens.asSlice(0, (long) count * Integer.BYTES));
            if (result != 0) {
                throw new IllegalStateException(
                        "llama.cpp cannot compute tokens %s to %s: it says %s".formatted(at, at + count, result));
            }
            at += count;
        }
    }

    /// Returns the logits after the last computed token, one for each token of the vocabulary. They are the
    /// library's own memory, valid until the next call.
    MemorySegment logits() {
        MemorySegment logits = calls.logits(context, vocabulary);
        if (logits.equals(MemorySegment.NULL)) {
            throw new IllegalStateException("nothing was computed in this context yet");
        }
        return logits;
    }

    void truncate(int count) {
        calls.remove(context, MAIN_SEQUENCE, count, ALL_POSITIONS);
    }

    /// Bytes of the state of tokens `[from, to)`.
    long stateBytes(int from, int to) {
        calls.share(context, MAIN_SEQUENCE, STAGING_SEQUENCE, from, to);
        try {
            return calls.stateBytes(context, STAGING_SEQUENCE);
        } finally {
            calls.remove(context, STAGING_SEQUENCE, ALL_POSITIONS, ALL_POSITIONS);
        }
    }

    /// Writes the state of tokens `[from, to)`, straight from where llama.cpp has it.
    ///
    /// @param into native memory of exactly its size
    /// @throws IllegalStateException when it has another size
    void copyOut(int from, int to, MemorySegment into) {
        calls.share(context, MAIN_SEQUENCE, STAGING_SEQUENCE, from, to);
        try {
            long written = calls.readState(context, STAGING_SEQUENCE, into);
            if (written != into.byteSize()) {
                throw new IllegalStateException("llama.cpp writes %s bytes as the state of tokens %s to %s, not %s"
                        .formatted(written, from, to, into.byteSize()));
            }
        } finally {
            calls.remove(context, STAGING_SEQUENCE, ALL_POSITIONS, ALL_POSITIONS);
        }
    }

    /// Adds tokens to the sequence by their state, straight to where llama.cpp has it.
    ///
    /// @param state native memory; what [#copyOut] wrote, checked by the caller
    /// @return whether llama.cpp took it; if not, all is as before
    boolean copyIn(MemorySegment state) {
        try {
            boolean taken = calls.writeState(context, STAGING_SEQUENCE, state) == state.byteSize();
            if (taken) {
                calls.share(context, STAGING_SEQUENCE, MAIN_SEQUENCE, ALL_POSITIONS, ALL_POSITIONS);
            }
            return taken;
        } finally {
            calls.remove(context, STAGING_SEQUENCE, ALL_POSITIONS, ALL_POSITIONS);
        }
    }

    @Override
    public void close() {
        calls.freeContext(context);
        arena.close();
    }
}
