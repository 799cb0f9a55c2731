package io.kvcache.engines.llamacpp;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;

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
/// knows has it: its fields, and what the library sets them to before anybody else does.
///
/// Builds differ in these structs and nothing in a library says how. So the library is asked for its
/// defaults, twice, in rooms that are far larger than the struct and filled with two different patterns:
/// what it wrote is equal in both, what it left alone is not. Every field has to have been written, with
/// the default that is known, and no byte behind the struct.
final class ParameterStruct {

    /// Of a model: 64 bytes.
    static final ParameterStruct MODEL = new ParameterStruct(
            "llama_model_default_params",
            pointer("devices"),
            number("n_gpu_layers", 0),
            number("split_mode", 1),
            number("main_gpu", 0),
            pointer("tensor_split"),
            pointer("progress_callback"),
            pointer("progress_callback_user_data"),
            pointer("kv_overrides"),
            flag("vocab_only", false),
            flag("use_mmap", true),
            flag("use_mlock", false),
            flag("check_tensors", false));

    /// Of a context: 120 bytes.
    static final ParameterStruct CONTEXT = new ParameterStruct(
            "llama_context_default_params",
            number("n_ctx", 512),
            number("n_batch", 2048),
            number("n_ubatch", 512),
            number("n_seq_max", 1),
            number("n_threads", 4),
            number("n_threads_batch", 4),
            number("rope_scaling_type", -1),
            number("pooling_type", -1),
            number("attention_type", -1),
            real("rope_freq_base", 0),
            real("rope_freq_scale", 0),
            real("yarn_ext_factor", -1),
            real("yarn_attn_factor", 1),
            real("yarn_beta_fast", 32),
            real("yarn_beta_slow", 1),
            number("yarn_orig_ctx", 0),
            real("defrag_thold", -1),
            pointer("cb_eval"),
            pointer("cb_eval_user_data"),
            number("type_k", 1),
            number("type_v", 1),
            flag("logits_all", false),
            flag("embeddings", false),
            flag("offload_kqv", true),
            flag("flash_attn", false),
            flag("no_perf", true),
            pointer("abort_callback"),
            pointer("abort_callback_data"));

    private static final int ROOM_BYTES = 1024;
    private static final byte[] PATTERNS = {(byte) 0xa5, 0x5a};

    /// A field and the bits that the library sets it to.
    record Field(ValueLayout layout, long bits) {}

    private final String defaults;
    private final StructLayout layout;
    private final MemorySegment image;

    /// @param defaults name of the function that fills it
    ParameterStruct(String defaults, Field... fields) {
        this.defaults = defaults;
        List<MemoryLayout> members = new ArrayList<>();
        image = MemorySegment.ofArray(new byte[ROOM_BYTES]);
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

    static Field number(String name, int value) {
        return new Field(JAVA_INT.withName(name), value);
    }

    static Field real(String name, float value) {
        return new Field(JAVA_FLOAT.withName(name), Float.floatToRawIntBits(value));
    }

    static Field flag(String name, boolean value) {
        return new Field(JAVA_BYTE.withName(name), value ? 1 : 0);
    }

    static Field pointer(String name) {
        return new Field(ADDRESS.withName(name), 0);
    }

    /// The function that fills it.
    String defaults() {
        return defaults;
    }

    /// For signatures.
    StructLayout layout() {
        return layout;
    }

    /// Offset of a field in bytes.
    long offset(String field) {
        return layout.byteOffset(PathElement.groupElement(field));
    }

    /// How a library fills a struct.
    @FunctionalInterface
    interface Filling {

        /// Has the struct made by an allocator and filled.
        void fill(SegmentAllocator room);
    }

    /// Compares what the library sets with what this adapter knows.
    ///
    /// @throws UnsupportedLlamaException when they differ; the message says where
    void check(String library, Filling filling) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment[] rooms = new MemorySegment[PATTERNS.length];
            for (int i = 0; i < rooms.length; i++) {
                MemorySegment room = arena.allocate(ROOM_BYTES, Long.BYTES).fill(PATTERNS[i]);
                filling.fill((bytes, _) -> room.asSlice(0, bytes));
                rooms[i] = room;
            }
            checkEnd(library, rooms);
            checkFields(library, rooms);
        }
    }

    private static boolean written(MemorySegment[] rooms, long at) {
        return rooms[0].get(JAVA_BYTE, at) == rooms[1].get(JAVA_BYTE, at);
    }

    private void checkEnd(String library, MemorySegment[] rooms) {
        long end = ROOM_BYTES;
        while (end > 0 && !written(rooms, end - 1)) {
            end--;
        }
        if (end > layout.byteSize()) {
            throw new UnsupportedLlamaException(
                    library,
                    "%s fills at least %d bytes, and %d where it is known".formatted(defaults, end, layout.byteSize()));
        }
    }

    private void checkFields(String library, MemorySegment[] rooms) {
        long offset = 0;
        for (MemoryLayout member : layout.memberLayouts()) {
            for (long at = offset; at < offset + member.byteSize(); at++) {
                byte expected = image.get(JAVA_BYTE, at);
                boolean untouched = !written(rooms, at);
                if (untouched ? !(member instanceof PaddingLayout) : rooms[0].get(JAVA_BYTE, at) != expected) {
                    String found =
                            untouched ? "not set" : String.valueOf(Byte.toUnsignedInt(rooms[0].get(JAVA_BYTE, at)));
                    throw new UnsupportedLlamaException(
                            library,
                            "byte %d (%s) of what %s fills is %s, and %d where it is known"
                                    .formatted(
                                            at,
                                            member.name().orElse("between fields"),
                                            defaults,
                                            found,
                                            Byte.toUnsignedInt(expected)));
                }
            }
            offset += member.byteSize();
        }
    }
}
