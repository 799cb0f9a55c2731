package io.kvcache.engines.llamacpp;

import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

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
record StateLayout(boolean transposed, List<Layer> layers) {

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

    StateLayout {
        layers = List.copyOf(layers);
    }

    /// Reads along a state.
    private static final class Cursor {

        private final MemorySegment state;
        private long at;

        Cursor(MemorySegment state) {
            this.state = state;
        }

        int number() {
            at += Integer.BYTES;
            return state.get(JAVA_INT_UNALIGNED, at - Integer.BYTES);
        }

        long wide() {
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
    static StateLayout read(MemorySegment one, String model) {
        try {
            Cursor in = new Cursor(one);
            require(model, in.number() == 1, "a state of 1 token begins with another number");
            require(model, in.wide() == 0, "the first token is not at position 0, alone");
            int transposed = in.number();
            require(model, transposed == 0 || transposed == 1, "values are neither transposed nor not");
            int count = in.number();
            require(model, count > 0 && count <= one.byteSize() / LAYER_BYTES, "a state of " + count + " layers");
            List<Layer> layers = layers(in, model, count, transposed == 1);
            StateLayout layout = new StateLayout(transposed == 1, layers);
            require(
                    model,
                    layout.bytes(1) == one.byteSize() && layout.fits(one, 0, 1),
                    "a state of 1 token has %d bytes, where %d are known".formatted(one.byteSize(), layout.bytes(1)));
            return layout;
        } catch (IndexOutOfBoundsException ended) {
            throw new UnsupportedLlamaException(model, "a state of 1 token ends after " + one.byteSize() + " bytes");
        }
    }

    private static List<Layer> layers(Cursor in, String model, int count, boolean transposed) {
        int[] keyTypes = new int[count];
        long[] keyBytes = new long[count];
        for (int i = 0; i < count; i++) {
            keyTypes[i] = in.number();
            keyBytes[i] = in.wide();
            require(model, in.skip(keyBytes[i]), "a key of " + keyBytes[i] + " bytes");
        }
        List<Layer> layers = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int type = in.number();
            long bytes = transposed ? in.number() : in.wide();
            int elements = transposed ? in.number() : 1;
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

    /// Bytes of the state of so many tokens.
    long bytes(int tokens) {
        long each = CELL_BYTES;
        for (Layer layer : layers) {
            each += layer.tokenBytes();
        }
        return FIXED_BYTES + 2 * LAYER_BYTES * layers.size() + each * tokens;
    }

    /// Whether a state is one of consecutive tokens at a position, in this layout.
    ///
    /// @param state may be longer; what is behind the state is not looked at
    boolean fits(MemorySegment state, int position, int tokens) {
        if (state.byteSize() < bytes(tokens)) {
            return false;
        }
        Cursor in = new Cursor(state);
        boolean right = in.number() == tokens;
        for (int i = 0; right && i < tokens; i++) {
            right = in.number() == position + i && in.number() == 0;
        }
        right = right && in.number() == (transposed ? 1 : 0) && in.number() == layers.size();
        for (int i = 0; right && i < layers.size(); i++) {
            Layer layer = layers.get(i);
            right = in.number() == layer.keyType()
                    && in.wide() == layer.keyBytes()
                    && in.skip(layer.keyBytes() * tokens);
        }
        for (int i = 0; right && i < layers.size(); i++) {
            Layer layer = layers.get(i);
            right = in.number() == layer.valueType()
                    && (transposed
                            ? in.number() == layer.valueBytes() && in.number() == layer.valueElements()
                            : in.wide() == layer.valueBytes())
                    && in.skip(layer.valueBytes() * layer.valueElements() * tokens);
        }
        return right;
    }

    /// In one line, for a fingerprint: types, sizes and order.
    String describe() {
        Layer first = layers.getFirst();
        boolean equal = layers.stream().allMatch(first::equals);
        return "%d layers, %s, values %s"
                .formatted(
                        layers.size(), equal ? describe(first) : layers.toString(), transposed ? "across" : "in rows");
    }

    private static String describe(Layer layer) {
        return "keys %d x %d, values %d x %d x %d"
                .formatted(
                        layer.keyType(),
                        layer.keyBytes(),
                        layer.valueType(),
                        layer.valueBytes(),
                        layer.valueElements());
    }
}
