package io.kvcache.engines.llamacpp;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;

/// A Llama model with random weights, written as a GGUF file: for tests, demos and measurements without a download.
/// Its answers have no meaning, but every prompt gets another one.
///
/// Weights are normal with a deviation of 1.6 / sqrt(inputs), so nearly all of its greedy tokens are distinct.
///
/// @param hidden elements of a token's activation
/// @param inner elements between the two products of the feed-forward
/// @param layers of the model
/// @param heads of queries; each has `hidden / heads` elements
/// @param kvHeads of keys and values
/// @param context tokens of a sequence
/// @param seed of the weights
public record RandomGguf(int hidden, int inner, int layers, int heads, int kvHeads, int context, long seed) {

    /// 10 MB of weights; a token takes 2 KiB of keys and values.
    public static final RandomGguf SMALL = new RandomGguf(256, 512, 4, 4, 2, 1024, 7);

    /// 99 MB of weights; a token takes 4 KiB of keys and values.
    public static final RandomGguf MEDIUM = new RandomGguf(512, 1536, 8, 8, 2, 4096, 7);

    /// Tokens of the vocabulary: three special ones, one a byte, one a printable ASCII character, and fillers. A text
    /// gets no space before it, so a character of ASCII is a token.
    public static final int VOCABULARY = 512;

    private static final int BEGIN = 1;
    private static final int END = 2;
    private static final int FIRST_BYTE = 3;
    private static final int FIRST_CHARACTER = FIRST_BYTE + 256;

    private static final double DEVIATION = 1.6;
    private static final int ALIGNMENT = 32;
    private static final int HEADER_BYTES = 1 << 20;
    private static final int VERSION = 3;
    private static final int UINT32 = 4;
    private static final int FLOAT32 = 6;
    private static final int INT32 = 5;
    private static final int BOOL = 7;
    private static final int STRING = 8;
    private static final int ARRAY = 9;

    /// `enum llama_token_type`
    private static final int NORMAL = 1;

    private static final int UNKNOWN = 2;
    private static final int CONTROL = 3;
    private static final int BYTE = 6;

    /// The same model with other weights.
    public RandomGguf withSeed(long other) {
        return new RandomGguf(hidden, inner, layers, heads, kvHeads, context, other);
    }

    /// Writes the file.
    ///
    /// @param file replaced when it exists; its folder is created when it is missing
    /// @return the file
    public Path write(Path file) throws IOException {
        return write(file, Map.of());
    }

    /// Writes the file with other metadata, such as a template of chats.
    ///
    /// @param file replaced when it exists; its folder is created when it is missing
    /// @param changes put over the model's own; a text, a number, a boolean, or a list of one kind of these
    public Path write(Path file, Map<String, Object> changes) throws IOException {
        Path folder = file.toAbsolutePath().getParent();
        if (folder != null) {
            Files.createDirectories(folder);
        }
        Map<String, long[]> tensors = tensors();
        ByteBuffer header = header(tensors, changes);
        long bytes = header.limit();
        for (long[] shape : tensors.values()) {
            bytes += aligned(elements(shape) * Float.BYTES);
        }
        try (FileChannel channel = FileChannel.open(
                        file,
                        StandardOpenOption.CREATE,
                        StandardOpenOption.TRUNCATE_EXISTING,
                        StandardOpenOption.READ,
                        StandardOpenOption.WRITE);
                Arena arena = Arena.ofConfined()) {
            MemorySegment all = channel.map(MapMode.READ_WRITE, 0, bytes, arena);
            MemorySegment.copy(MemorySegment.ofBuffer(header), 0, all, 0, header.limit());
            SplittableRandom random = new SplittableRandom(seed);
            long at = header.limit();
            for (Map.Entry<String, long[]> tensor : tensors.entrySet()) {
                fill(all, at, tensor, random);
                at += aligned(elements(tensor.getValue()) * Float.BYTES);
            }
        }
        return file;
    }

    private static void fill(MemorySegment all, long from, Map.Entry<String, long[]> tensor, SplittableRandom random) {
        long[] shape = tensor.getValue();
        boolean embedding = tensor.getKey().equals("token_embd.weight");
        double deviation = embedding ? 1 : DEVIATION / Math.sqrt((double) shape[0]);
        for (long i = 0; i < elements(shape); i++) {
            float weight = shape.length == 1 ? 1 : (float) (deviation * random.nextGaussian());
            all.set(ValueLayout.JAVA_FLOAT_UNALIGNED, from + i * Float.BYTES, weight);
        }
    }

    /// By name, the shape of each: inputs first.
    private Map<String, long[]> tensors() {
        long kv = (long) hidden / heads * kvHeads;
        Map<String, long[]> tensors = new LinkedHashMap<>();
        tensors.put("token_embd.weight", new long[] {hidden, VOCABULARY});
        for (int layer = 0; layer < layers; layer++) {
            String at = "blk." + layer + ".";
            tensors.put(at + "attn_norm.weight", new long[] {hidden});
            tensors.put(at + "attn_q.weight", new long[] {hidden, hidden});
            tensors.put(at + "attn_k.weight", new long[] {hidden, kv});
            tensors.put(at + "attn_v.weight", new long[] {hidden, kv});
            tensors.put(at + "attn_output.weight", new long[] {hidden, hidden});
            tensors.put(at + "ffn_norm.weight", new long[] {hidden});
            tensors.put(at + "ffn_gate.weight", new long[] {hidden, inner});
            tensors.put(at + "ffn_up.weight", new long[] {hidden, inner});
            tensors.put(at + "ffn_down.weight", new long[] {inner, hidden});
        }
        tensors.put("output_norm.weight", new long[] {hidden});
        tensors.put("output.weight", new long[] {hidden, VOCABULARY});
        return tensors;
    }

    /// The magic number, what there is to know of the model, and where each tensor is.
    private ByteBuffer header(Map<String, long[]> tensors, Map<String, Object> changes) {
        Map<String, Object> facts = metadata();
        facts.putAll(changes);
        ByteBuffer out = ByteBuffer.allocate(HEADER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        out.put("GGUF".getBytes(StandardCharsets.US_ASCII)).putInt(VERSION);
        out.putLong(tensors.size()).putLong(facts.size());
        facts.forEach((key, value) -> {
            writeString(out, key);
            out.putInt(typeOf(value));
            writeValue(out, value);
        });
        long offset = 0;
        for (Map.Entry<String, long[]> tensor : tensors.entrySet()) {
            writeString(out, tensor.getKey());
            out.putInt(tensor.getValue().length);
            for (long size : tensor.getValue()) {
                out.putLong(size);
            }
            // Type 0: floats of 32 bits.
            out.putInt(0).putLong(offset);
            offset += aligned(elements(tensor.getValue()) * Float.BYTES);
        }
        return out.flip().limit((int) aligned(out.limit()));
    }

    private Map<String, Object> metadata() {
        Map<String, Object> facts = new LinkedHashMap<>();
        facts.put("general.architecture", "llama");
        facts.put("general.name", "random");
        facts.put("general.file_type", 0);
        facts.put("llama.vocab_size", VOCABULARY);
        facts.put("llama.context_length", context);
        facts.put("llama.embedding_length", hidden);
        facts.put("llama.block_count", layers);
        facts.put("llama.feed_forward_length", inner);
        facts.put("llama.attention.head_count", heads);
        facts.put("llama.attention.head_count_kv", kvHeads);
        facts.put("llama.attention.layer_norm_rms_epsilon", 1e-5f);
        facts.put("llama.rope.dimension_count", hidden / heads);
        facts.put("llama.rope.freq_base", 10_000f);
        facts.put("tokenizer.ggml.model", "llama");
        facts.put("tokenizer.ggml.tokens", words());
        facts.put("tokenizer.ggml.scores", Collections.nCopies(VOCABULARY, 0f));
        facts.put("tokenizer.ggml.token_type", wordTypes());
        facts.put("tokenizer.ggml.unknown_token_id", 0);
        facts.put("tokenizer.ggml.bos_token_id", BEGIN);
        facts.put("tokenizer.ggml.eos_token_id", END);
        facts.put("tokenizer.ggml.add_space_prefix", false);
        return facts;
    }

    /// The texts of the tokens, in their order.
    static List<Object> words() {
        List<Object> words = new ArrayList<>(List.of("<unk>", "<s>", "</s>"));
        for (int i = 0; i < 256; i++) {
            words.add(String.format(Locale.ROOT, "<0x%02X>", i));
        }
        for (char c = ' '; c <= '~'; c++) {
            words.add(c == ' ' ? "\u2581" : String.valueOf(c));
        }
        while (words.size() < VOCABULARY) {
            words.add("tok" + words.size());
        }
        return words;
    }

    private static List<Object> wordTypes() {
        List<Object> types = new ArrayList<>(List.of(UNKNOWN, CONTROL, CONTROL));
        types.addAll(Collections.nCopies(FIRST_CHARACTER - FIRST_BYTE, BYTE));
        types.addAll(Collections.nCopies(VOCABULARY - FIRST_CHARACTER, NORMAL));
        return types;
    }

    /// The token that stands for a printable character of ASCII.
    static int tokenOf(char character) {
        return FIRST_CHARACTER + character - ' ';
    }

    /// The token that stands for a byte.
    static int tokenOf(byte value) {
        return FIRST_BYTE + Byte.toUnsignedInt(value);
    }

    private static int typeOf(Object value) {
        return switch (value) {
            case Integer _ -> UINT32;
            case Float _ -> FLOAT32;
            case Boolean _ -> BOOL;
            case List<?> _ -> ARRAY;
            default -> STRING;
        };
    }

    private static void writeValue(ByteBuffer out, Object value) {
        switch (value) {
            case Integer number -> out.putInt(number);
            case Float number -> out.putFloat(number);
            case Boolean flag -> out.put((byte) (flag ? 1 : 0));
            case List<?> list -> {
                int type = list.getFirst() instanceof Integer ? INT32 : typeOf(list.getFirst());
                out.putInt(type).putLong(list.size());
                list.forEach(each -> writeValue(out, each));
            }
            default -> writeString(out, value.toString());
        }
    }

    private static void writeString(ByteBuffer out, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        out.putLong(bytes.length).put(bytes);
    }

    private static long aligned(long bytes) {
        return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }

    private static long elements(long[] shape) {
        long elements = 1;
        for (long each : shape) {
            elements *= each;
        }
        return elements;
    }
}
