package io.kvcache.engines.llamacpp;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import io.kvcache.engines.llamacpp.LlamaLibrary.UnsupportedLlamaException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// How llama.cpp writes the state of a sequence: all of it that is not keys and values.
///
/// In the order of the bytes, little-endian: the number of tokens (4); for each its position (4) and a
/// zero (4); whether values are transposed (4); the number of layers (4); for each layer the type of keys
/// (4), the bytes of a token's (8), and those of each token; for each layer the type of values (4), the
/// bytes of a token's (8), and those of each token, or, transposed, the type (4), the bytes of an element
/// (4), the elements of a token (4), and for each of these one element of each token.
///
/// llama.cpp believes most of what it reads there, and ends the process over some of it. So a state is
/// given to it only when everything but keys and values is as this says.
///
/// @param transposed whether values are transposed
/// @param layers by their number
record LlamaStateLayout(boolean transposed, List<Layer> layers) {

    /// Types and sizes of one layer.
    ///
    /// @param keyBytes of a token
    /// @param valueBytes of a token, or of an element where values are transposed
    /// @param valueElements of a token where values are transposed, else 1
    record Layer(int keyType, long keyBytes, int valueType, long valueBytes, int valueElements) {

        long tokenBytes() {
            return keyBytes + valueBytes * valueElements;
        }
    }

    private static final long CELL_BYTES = 8;
    private static final long LAYER_BYTES = 12;
    private static final long FIXED_BYTES = 12;

    LlamaStateLayout {
        layers = List.copyOf(layers);
    }

    private static final class Cursor {

        private final MemorySegment state;
        private long at;

        Cursor(MemorySegment state) {
            this.state = state;
        }

        int readInt() {
            at += Integer.BYTES;
            return state.get(JAVA_INT_UNALIGNED, at - Integer.BYTES);
        }

        long readLong() {
            at += Long.BYTES;
            return state.get(JAVA_LONG_UNALIGNED, at - Long.BYTES);
        }

        boolean skip(long bytes) {
            at += bytes;
            return bytes >= 0 && at >= 0 && at <= state.byteSize();
        }
    }

    /// Learns the layout from the state of a sequence of one token.
    ///
    /// @param model what messages call it
    /// @throws UnsupportedLlamaException when it cannot be read as above, to its last byte
    static LlamaStateLayout read(MemorySegment one, String model) {
        try {
            Cursor in = new Cursor(one);
            require(model, in.readInt() == 1, "a state of 1 token begins with another number");
            require(model, in.readLong() == 0, "the first token is not at position 0, alone");
            int transposed = in.readInt();
            require(model, transposed == 0 || transposed == 1, "values are neither transposed nor not");
            int count = in.readInt();
            require(model, count > 0 && count <= one.byteSize() / LAYER_BYTES, "a state of " + count + " layers");
            List<Layer> layers = layers(in, model, count, transposed == 1);
            LlamaStateLayout layout = new LlamaStateLayout(transposed == 1, layers);
            require(
                    model,
                    layout.bytes(1) == one.byteSize() && layout.matches(one, 0, 1),
                    "a state of 1 token has %s bytes, where %s are known".formatted(one.byteSize(), layout.bytes(1)));
            return layout;
        } catch (IndexOutOfBoundsException ended) {
            throw new UnsupportedLlamaException(model, "a state of 1 token ends after " + one.byteSize() + " bytes");
        }
    }

    private static List<Layer> layers(Cursor in, String model, int count, boolean transposed) {
        int[] keyTypes = new int[count];
        long[] keyBytes = new long[count];
        for (int i = 0; i < count; i++) {
            keyTypes[i] = in.readInt();
            keyBytes[i] = in.readLong();
            require(model, in.skip(keyBytes[i]), "a key of " + keyBytes[i] + " bytes");
        }
        List<Layer> layers = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int type = in.readInt();
            long bytes = transposed ? in.readInt() : in.readLong();
            int elements = transposed ? in.readInt() : 1;
            Layer layer = new Layer(keyTypes[i], keyBytes[i], type, bytes, elements);
            require(model, in.skip(bytes * elements), "a value of " + elements + " times " + bytes + " bytes");
            layers.add(layer);
        }
        return layers;
    }

    private static void require(String model, boolean right, String found) {
        if (!right) {
            throw new UnsupportedLlamaException(model, found);
        }
    }

    long bytes(int tokens) {
        long each = CELL_BYTES;
        for (Layer layer : layers) {
            each += layer.tokenBytes();
        }
        return FIXED_BYTES + 2 * LAYER_BYTES * layers.size() + each * tokens;
    }

    /// Returns whether a state is one of consecutive tokens at a position, in this layout.
    ///
    /// @param state may be longer; what is behind the state is not looked at
    boolean matches(MemorySegment state, int position, int tokens) {
        if (state.byteSize() < bytes(tokens)) {
            return false;
        }
        Cursor in = new Cursor(state);
        boolean right = in.readInt() == tokens;
        for (int i = 0; right && i < tokens; i++) {
            right = in.readInt() == position + i && in.readInt() == 0;
        }
        right = right && in.readInt() == (transposed ? 1 : 0) && in.readInt() == layers.size();
        for (int i = 0; right && i < layers.size(); i++) {
            Layer layer = layers.get(i);
            right = in.readInt() == layer.keyType()
                    && in.readLong() == layer.keyBytes()
                    && in.skip(layer.keyBytes() * tokens);
        }
        for (int i = 0; right && i < layers.size(); i++) {
            Layer layer = layers.get(i);
            right = in.readInt() == layer.valueType()
                    && (transposed
                            ? in.readInt() == layer.valueBytes() && in.readInt() == layer.valueElements()
                            : in.readLong() == layer.valueBytes())
                    && in.skip(layer.valueBytes() * layer.valueElements() * tokens);
        }
        return right;
    }

    /// In one line, for a fingerprint: types, sizes and order.
    String describe() {
        Layer first = layers.getFirst();
        boolean equal = layers.stream().allMatch(first::equals);
        return "%s layers, %s, values %s"
                .formatted(
                        layers.size(), equal ? describe(first) : layers.toString(), transposed ? "across" : "in rows");
    }

    private static String describe(Layer layer) {
        return "keys %s x %s, values %s x %s x %s"
                .formatted(
                        layer.keyType(),
                        layer.keyBytes(),
                        layer.valueType(),
                        layer.valueBytes(),
                        layer.valueElements());
    }
}
