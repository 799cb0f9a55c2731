package io.kvcache.engines.llamacpp;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;

import io.kvcache.engines.llamacpp.LlamaLibrary.UnsupportedLlamaException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.PaddingLayout;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/// A struct of parameters that llama.cpp hands out and takes by value, as the build that this adapter
/// knows has it: its fields, and what the library sets them to before any caller does.
///
/// Builds differ in these structs and nothing in a library says how. So the library is asked for its
/// defaults, twice, in rooms that are far larger than the struct and filled with two different patterns:
/// what it wrote is equal in both, what it left alone is not. Every field has to have been written, with
/// the default that is known, and no byte behind the struct.
final class LlamaParameterStruct {

    /// Parameters of a model: 64 bytes.
    static final LlamaParameterStruct MODEL = new LlamaParameterStruct(
            "llama_model_default_params",
            pointerField("devices"),
            intField("n_gpu_layers", 0),
            intField("split_mode", 1),
            intField("main_gpu", 0),
            pointerField("tensor_split"),
            pointerField("progress_callback"),
            pointerField("progress_callback_user_data"),
            pointerField("kv_overrides"),
            booleanField("vocab_only", false),
            booleanField("use_mmap", true),
            booleanField("use_mlock", false),
            booleanField("check_tensors", false));

    /// Parameters of a context: 120 bytes.
    static final LlamaParameterStruct CONTEXT = new LlamaParameterStruct(
            "llama_context_default_params",
            intField("n_ctx", 512),
            intField("n_batch", 2048),
            intField("n_ubatch", 512),
            intField("n_seq_max", 1),
            intField("n_threads", 4),
            intField("n_threads_batch", 4),
            intField("rope_scaling_type", -1),
            intField("pooling_type", -1),
            intField("attention_type", -1),
            floatField("rope_freq_base", 0),
            floatField("rope_freq_scale", 0),
            floatField("yarn_ext_factor", -1),
            floatField("yarn_attn_factor", 1),
            floatField("yarn_beta_fast", 32),
            floatField("yarn_beta_slow", 1),
            intField("yarn_orig_ctx", 0),
            floatField("defrag_thold", -1),
            pointerField("cb_eval"),
            pointerField("cb_eval_user_data"),
            intField("type_k", 1),
            intField("type_v", 1),
            booleanField("logits_all", false),
            booleanField("embeddings", false),
            booleanField("offload_kqv", true),
            booleanField("flash_attn", false),
            booleanField("no_perf", true),
            pointerField("abort_callback"),
            pointerField("abort_callback_data"));

    private static final int BUFFER_BYTES = 1024;
    private static final byte[] PATTERNS = {(byte) 0xa5, 0x5a};

    /// A field and the bits that the library sets it to.
    record Field(ValueLayout layout, long bits) {}

    private final String defaultsFunction;
    private final StructLayout layout;
    private final MemorySegment image;

    /// @param defaults name of the function that fills it
    LlamaParameterStruct(String defaults, Field... fields) {
        this.defaultsFunction = defaults;
        List<MemoryLayout> members = new ArrayList<>();
        image = MemorySegment.ofArray(new byte[BUFFER_BYTES]);
        long offset = 0;
        long alignment = 1;
        for (Field field : fields) {
            offset += pad(members, offset, field.layout().byteAlignment());
            alignment = Math.max(alignment, field.layout().byteAlignment());
            members.add(field.layout());
            if (field.layout().byteSize() == 1) {
                image.set(JAVA_BYTE, offset, (byte) field.bits());
            } else {
                // Pointers are null, and the upper half of the image is zero anyway.
                image.set(JAVA_INT_UNALIGNED, offset, (int) field.bits());
            }
            offset += field.layout().byteSize();
        }
        pad(members, offset, alignment);
        layout = MemoryLayout.structLayout(members.toArray(MemoryLayout[]::new));
    }

    private static long pad(List<MemoryLayout> members, long offset, long alignment) {
        long bytes = -offset & (alignment - 1);
        if (bytes > 0) {
            members.add(MemoryLayout.paddingLayout(bytes));
        }
        return bytes;
    }

    static Field intField(String name, int value) {
        return new Field(JAVA_INT.withName(name), value);
    }

    static Field floatField(String name, float value) {
        return new Field(JAVA_FLOAT.withName(name), Float.floatToRawIntBits(value));
    }

    static Field booleanField(String name, boolean value) {
        return new Field(JAVA_BYTE.withName(name), value ? 1 : 0);
    }

    static Field pointerField(String name) {
        return new Field(ADDRESS.withName(name), 0);
    }

    String defaultsFunction() {
        return defaultsFunction;
    }

    StructLayout layout() {
        return layout;
    }

    long offset(String field) {
        return layout.byteOffset(PathElement.groupElement(field));
    }

    /// How a library fills a struct.
    @FunctionalInterface
    interface Initializer {

        /// Has the struct made by an allocator and filled.
        void fill(SegmentAllocator room);
    }

    /// Compares what the library sets with what this adapter knows.
    ///
    /// @throws UnsupportedLlamaException when they differ; the message says where
    void check(String library, Initializer initializer) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment[] rooms = new MemorySegment[PATTERNS.length];
            for (int i = 0; i < rooms.length; i++) {
                MemorySegment room = arena.allocate(BUFFER_BYTES, Long.BYTES).fill(PATTERNS[i]);
                initializer.fill((bytes, _) -> room.asSlice(0, bytes));
                rooms[i] = room;
            }
            checkEnd(library, rooms);
            checkFields(library, rooms);
        }
    }

    private static boolean isWritten(MemorySegment[] rooms, long at) {
        return rooms[0].get(JAVA_BYTE, at) == rooms[1].get(JAVA_BYTE, at);
    }

    private void checkEnd(String library, MemorySegment[] rooms) {
        long end = BUFFER_BYTES;
        while (end > 0 && !isWritten(rooms, end - 1)) {
            end--;
        }
        if (end > layout.byteSize()) {
            throw new UnsupportedLlamaException(
                    library,
                    "%s fills at least %s bytes, and %s where it is known"
                            .formatted(defaultsFunction, end, layout.byteSize()));
        }
    }

    private void checkFields(String library, MemorySegment[] rooms) {
        long offset = 0;
        for (MemoryLayout member : layout.memberLayouts()) {
            for (long at = offset; at < offset + member.byteSize(); at++) {
                byte expected = image.get(JAVA_BYTE, at);
                boolean untouched = !isWritten(rooms, at);
                if (untouched ? !(member instanceof PaddingLayout) : rooms[0].get(JAVA_BYTE, at) != expected) {
                    String found =
                            untouched ? "not set" : String.valueOf(Byte.toUnsignedInt(rooms[0].get(JAVA_BYTE, at)));
                    throw new UnsupportedLlamaException(
                            library,
                            "byte %s (%s) of what %s fills is %s, and %s where it is known"
                                    .formatted(
                                            at,
                                            member.name().orElse("between fields"),
                                            defaultsFunction,
                                            found,
                                            Byte.toUnsignedInt(expected)));
                }
            }
            offset += member.byteSize();
        }
    }
}
