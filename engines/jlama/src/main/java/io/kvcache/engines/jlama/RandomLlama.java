package io.kvcache.engines.jlama;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.Collectors;

/// A Llama model with random weights, written as Hugging Face lays models out: for tests, demos and measurements
/// without a download. Its text has no meaning, but every prompt gets another answer.
///
/// Weights are normal with a deviation of 1.6 / sqrt(inputs). With a deviation of 1 the activations fade and the model
/// repeats one token, so equal answers would prove nothing. With 1.6 nearly all of its greedy tokens are distinct.
///
/// @param hidden elements of a token's activation
/// @param inner elements between the two products of the feed-forward
/// @param layers of the model
/// @param heads of queries; each has `hidden / heads` elements
/// @param kvHeads of keys and values
/// @param context tokens of a sequence
/// @param seed of the weights
public record RandomLlama(int hidden, int inner, int layers, int heads, int kvHeads, int context, long seed) {

    /// 10 MB of weights; a token takes 4 KiB of keys and values.
    public static final RandomLlama SMALL = new RandomLlama(256, 512, 4, 4, 2, 1024, 7);

    /// 99 MB of weights; a token takes 8 KiB of keys and values.
    public static final RandomLlama MEDIUM = new RandomLlama(512, 1536, 8, 8, 2, 4096, 7);

    /// Tokens of the vocabulary: three special ones, one a byte, one a printable ASCII character, and fillers.
    public static final int VOCABULARY = 512;

    private static final double DEVIATION = 1.6;
    private static final int FIRST_BYTE = 3;
    private static final int FIRST_CHARACTER = FIRST_BYTE + 256;
    private static final int BUFFER_BYTES = 1 << 16;

    /// The same model with other weights.
    public RandomLlama withSeed(long other) {
        return new RandomLlama(hidden, inner, layers, heads, kvHeads, context, other);
    }

    /// Writes `config.json`, `tokenizer.json` and `model.safetensors`.
    ///
    /// @param folder created when it is missing
    /// @return the folder
    public Path write(Path folder) throws IOException {
        writeTokenizer(folder);
        writeWeights(folder.resolve("model.safetensors"));
        return folder;
    }

    /// Writes `config.json` and `tokenizer.json` alone, which is all that counting tokens needs.
    ///
    /// @param folder created when it is missing
    /// @return the folder
    public Path writeTokenizer(Path folder) throws IOException {
        Files.createDirectories(folder);
        Files.writeString(folder.resolve("config.json"), config());
        Files.writeString(folder.resolve("tokenizer.json"), tokenizer());
        return folder;
    }

    private String config() {
        return String.format(Locale.ROOT, """
                {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "max_position_embeddings": %d,
                 "hidden_size": %d, "intermediate_size": %d, "num_attention_heads": %d, "num_key_value_heads": %d,
                 "num_hidden_layers": %d, "rms_norm_eps": 1e-5, "vocab_size": %d, "bos_token_id": 1, "eos_token_id": 2,
                 "hidden_act": "silu", "rope_theta": 10000.0, "torch_dtype": "float32"}
                """, context, hidden, inner, heads, kvHeads, layers, VOCABULARY);
    }

    private static String tokenizer() {
        List<String> words = new ArrayList<>(List.of("<unk>", "<s>", "</s>"));
        for (int i = 0; i < 256; i++) {
            words.add(String.format(Locale.ROOT, "<0x%02X>", i));
        }
        for (char c = ' '; c <= '~'; c++) {
            words.add(c == ' ' ? "\u2581" : String.valueOf(c));
        }
        while (words.size() < VOCABULARY) {
            words.add("tok" + words.size());
        }
        List<String> entries = new ArrayList<>();
        for (int i = 0; i < words.size(); i++) {
            String word = words.get(i).replace("\\", "\\\\").replace("\"", "\\\"");
            entries.add("\"" + word + "\": " + i);
        }
        return """
                {"version": "1.0",
                 "added_tokens": [{"id": 1, "content": "<s>", "special": true}, {"id": 2, "content": "</s>", "special": true}],
                 "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "merges": [],
                  "vocab": {""" + String.join(", ", entries) + "}}}\n";
    }

    /// The token that stands for a printable character of ASCII.
    public static int tokenOf(char character) {
        return FIRST_CHARACTER + character - ' ';
    }

    private Map<String, int[]> shapes() {
        int head = hidden / heads;
        Map<String, int[]> shapes = new LinkedHashMap<>();
        shapes.put("model.embed_tokens.weight", new int[] {VOCABULARY, hidden});
        for (int layer = 0; layer < layers; layer++) {
            String at = "model.layers." + layer + ".";
            shapes.put(at + "self_attn.q_proj.weight", new int[] {heads * head, hidden});
            shapes.put(at + "self_attn.k_proj.weight", new int[] {kvHeads * head, hidden});
            shapes.put(at + "self_attn.v_proj.weight", new int[] {kvHeads * head, hidden});
            shapes.put(at + "self_attn.o_proj.weight", new int[] {hidden, heads * head});
            shapes.put(at + "mlp.gate_proj.weight", new int[] {inner, hidden});
            shapes.put(at + "mlp.up_proj.weight", new int[] {inner, hidden});
            shapes.put(at + "mlp.down_proj.weight", new int[] {hidden, inner});
            shapes.put(at + "input_layernorm.weight", new int[] {hidden});
            shapes.put(at + "post_attention_layernorm.weight", new int[] {hidden});
        }
        shapes.put("model.norm.weight", new int[] {hidden});
        shapes.put("lm_head.weight", new int[] {VOCABULARY, hidden});
        return shapes;
    }

    /// The length of the header, the header, which says where each tensor is, and the tensors.
    private void writeWeights(Path file) throws IOException {
        Map<String, int[]> shapes = shapes();
        List<String> entries = new ArrayList<>();
        long offset = 0;
        for (Map.Entry<String, int[]> each : shapes.entrySet()) {
            long end = offset + elements(each.getValue()) * Float.BYTES;
            entries.add(String.format(
                    Locale.ROOT,
                    "\"%s\": {\"dtype\": \"F32\", \"shape\": [%s], \"data_offsets\": [%d, %d]}",
                    each.getKey(),
                    Arrays.stream(each.getValue()).mapToObj(String::valueOf).collect(Collectors.joining(", ")),
                    offset,
                    end));
            offset = end;
        }
        String text = "{" + String.join(", ", entries) + "}";
        byte[] header = (text + " ".repeat((8 - text.length() % 8) % 8)).getBytes(StandardCharsets.US_ASCII);
        SplittableRandom random = new SplittableRandom(seed);
        try (OutputStream out = Files.newOutputStream(file)) {
            out.write(ByteBuffer.allocate(Long.BYTES)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putLong(header.length)
                    .array());
            out.write(header);
            for (Map.Entry<String, int[]> each : shapes.entrySet()) {
                writeTensor(out, each, random);
            }
        }
    }

    private static void writeTensor(OutputStream out, Map.Entry<String, int[]> tensor, SplittableRandom random)
            throws IOException {
        int[] shape = tensor.getValue();
        boolean embedding = tensor.getKey().contains("embed");
        double deviation = embedding ? 1 : DEVIATION / Math.sqrt(shape[shape.length - 1]);
        ByteBuffer buffer = ByteBuffer.allocate(BUFFER_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (long i = 0; i < elements(shape); i++) {
            buffer.putFloat(shape.length == 1 ? 1 : (float) (deviation * random.nextGaussian()));
            if (!buffer.hasRemaining()) {
                out.write(buffer.array());
                buffer.clear();
            }
        }
        out.write(buffer.array(), 0, buffer.position());
    }

    private static long elements(int[] shape) {
        long elements = 1;
        for (int each : shape) {
            elements *= each;
        }
        return elements;
    }
}
