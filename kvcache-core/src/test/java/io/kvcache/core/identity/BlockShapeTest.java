package io.kvcache.core.identity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

class BlockShapeTest {

    private static final long SEED = 20261120;

    @ParameterizedTest
    @MethodSource("shapes")
    void givenAnyShape_whenTakingAllTokenRows_thenTheyTileTheBlock(BlockShape shape) {
        List<ByteRange> rows = new ArrayList<>();
        for (int layer = 0; layer < shape.layers(); layer++) {
            for (int plane = 0; plane < shape.planes(); plane++) {
                for (int head = 0; head < shape.kvHeads(); head++) {
                    for (int token = 0; token < shape.blockTokens(); token++) {
                        rows.add(shape.tokenRow(layer, plane, head, token));
                    }
                }
            }
        }
        assertTiles(rows, shape.bytes());
    }

    @ParameterizedTest
    @MethodSource("shapes")
    void givenAnyShape_whenTakingAllHeadSlices_thenTheyTileTheBlock(BlockShape shape) {
        List<ByteRange> pieces = new ArrayList<>();
        for (int layer = 0; layer < shape.layers(); layer++) {
            for (int plane = 0; plane < shape.planes(); plane++) {
                for (int head = 0; head < shape.kvHeads(); head++) {
                    StridedRange slice = shape.headSlice(layer, plane, head);
                    for (int piece = 0; piece < slice.pieces(); piece++) {
                        pieces.add(slice.piece(piece));
                    }
                }
            }
        }
        assertTiles(pieces, shape.bytes());
    }

    @ParameterizedTest
    @MethodSource("shapes")
    void givenAnyShape_whenTakingAllLayerSlices_thenTheyTileTheBlockInOrder(BlockShape shape) {
        List<ByteRange> slices = new ArrayList<>();
        for (int layer = 0; layer < shape.layers(); layer++) {
            slices.add(shape.layerSlice(layer));
        }
        assertThat(slices).isSortedAccordingTo(Comparator.comparingLong(ByteRange::offset));
        assertTiles(slices, shape.bytes());
    }

    @ParameterizedTest
    @MethodSource("shapes")
    void givenAnyShape_whenWalkingTheAxesInOrder_thenRowsAreWhereTheWalkMeetsThem(BlockShape shape) {
        long at = 0;
        boolean headsOutside = shape.order() == AxisOrder.LAYER_KV_HEAD_TOKEN;
        int outer = headsOutside ? shape.kvHeads() : shape.blockTokens();
        int inner = headsOutside ? shape.blockTokens() : shape.kvHeads();
        for (int layer = 0; layer < shape.layers(); layer++) {
            for (int plane = 0; plane < shape.planes(); plane++) {
                for (int i = 0; i < outer; i++) {
                    for (int j = 0; j < inner; j++) {
                        ByteRange row = shape.tokenRow(layer, plane, headsOutside ? i : j, headsOutside ? j : i);
                        assertThat(row.offset()).isEqualTo(at);
                        at = row.end();
                    }
                }
            }
        }
        assertThat(at).isEqualTo(shape.bytes());
    }

    @ParameterizedTest
    @MethodSource("shapes")
    void givenAnyShape_whenTakingAHeadSlice_thenItHoldsThatHeadsRowsInTokenOrder(BlockShape shape) {
        int layer = shape.layers() - 1;
        int plane = shape.planes() - 1;
        int head = shape.kvHeads() - 1;
        StridedRange slice = shape.headSlice(layer, plane, head);
        long rowBytes = (long) shape.headDim() * shape.dtype().bytes();
        assertThat(slice.bytes()).isEqualTo(rowBytes * shape.blockTokens());
        for (int token = 0; token < shape.blockTokens(); token++) {
            long inSlice = token * rowBytes;
            ByteRange piece = slice.piece((int) (inSlice / slice.pieceBytes()));
            assertThat(piece.offset() + inSlice % slice.pieceBytes())
                    .isEqualTo(shape.tokenRow(layer, plane, head, token).offset());
        }
    }

    @Test
    void givenTokensInsideHeads_whenTakingAHeadSlice_thenItIsOnePiece() {
        BlockShape shape = BlockShape.kv(2, 4, 8, 16, Dtype.BF16);
        assertThat(shape.headSlice(1, 0, 3)).isEqualTo(new StridedRange(2048 + 3 * 256, 256, 256, 1));
        assertThat(shape.headSlice(1, 0, 3).isContiguous()).isTrue();
    }

    @Test
    void givenHeadsInsideTokens_whenTakingAHeadSlice_thenItIsAPieceAToken() {
        BlockShape shape = BlockShape.kv(2, 4, 8, 16, Dtype.BF16).withOrder(AxisOrder.LAYER_KV_TOKEN_HEAD);
        assertThat(shape.headSlice(1, 0, 3)).isEqualTo(new StridedRange(2048 + 3 * 16, 16, 64, 16));
        assertThat(shape.headSlice(1, 0, 3).isContiguous()).isFalse();
    }

    @ParameterizedTest
    @EnumSource(AxisOrder.class)
    void givenOneHeadOrOneToken_whenTakingAHeadSlice_thenItIsOnePieceInAnyOrder(AxisOrder order) {
        assertThat(BlockShape.mla(3, 576, 16, Dtype.BF16)
                        .withOrder(order)
                        .headSlice(2, 0, 0)
                        .pieces())
                .isEqualTo(1);
        assertThat(BlockShape.kv(3, 4, 8, 1, Dtype.BF16)
                        .withOrder(order)
                        .headSlice(2, 1, 3)
                        .pieces())
                .isEqualTo(1);
    }

    @Test
    void givenLlama8b_whenAskedForSizes_thenTheyAreThoseOfTheModel() {
        BlockShape shape = BlockShape.kv(32, 8, 128, 16, Dtype.BF16);
        assertThat(shape.bytes()).isEqualTo(2L << 20);
        assertThat(shape.tokenBytes()).isEqualTo(128 << 10);
        assertThat(shape.layerSlice(31)).isEqualTo(new ByteRange(31L * 65_536, 65_536));
    }

    @Test
    void givenAShape_whenDescribed_thenAllNumbersAreThere() {
        assertThat(BlockShape.kv(32, 8, 128, 16, Dtype.BF16).describe())
                .isEqualTo("32 layers x K+V x 8 heads x 16 tokens x 128 BF16, order [layer][K|V][kvHead][token][dim],"
                        + " 2097152 bytes");
        assertThat(BlockShape.mla(61, 576, 16, Dtype.BF16)).asString().startsWith("61 layers x latent x 1 heads");
    }

    @Test
    void givenTheLargestBlock_whenMade_thenItIsAccepted() {
        assertThat(BlockShape.kv(64, 32, 128, 256, Dtype.BF16).bytes()).isEqualTo(BlockShape.MAX_BYTES);
        assertThat(BlockShape.mla(1, 1, 1, Dtype.INT8).bytes()).isEqualTo(1);
    }

    @Test
    void givenANumberOutOfRange_whenMakingAShape_thenTheMessageNamesItsValueAndRange() {
        assertRefused(() -> BlockShape.kv(0, 8, 128, 16, Dtype.BF16), "layers = 0 is out of range; allowed: 1 to 1024");
        assertRefused(
                () -> new BlockShape(1, 3, 1, 1, 1, Dtype.F32, AxisOrder.LAYER_KV_HEAD_TOKEN),
                "planes = 3 is out of range; allowed: 1 to 2");
        assertRefused(
                () -> BlockShape.kv(1, 4097, 1, 1, Dtype.F16), "kvHeads = 4097 is out of range; allowed: 1 to 4096");
        assertRefused(() -> BlockShape.mla(1, -1, 1, Dtype.F16), "headDim = -1 is out of range; allowed: 1 to 65536");
        assertRefused(
                () -> BlockShape.mla(1, 1, 65_537, Dtype.F16),
                "blockTokens = 65537 is out of range; allowed: 1 to 65536");
        assertRefused(
                () -> Part.full(BlockShape.kv(64, 32, 128, 257, Dtype.BF16)),
                "block bytes = 269484032 is out of range; allowed: 1 to 268435456");
        assertRefused(
                () -> Part.full(BlockShape.kv(1024, 4096, 65_536, 65_536, Dtype.F32)),
                "block bytes = 144115188075855872 is out of range; allowed: 1 to 268435456");
    }

    @Test
    void givenAnIndexOutOfRange_whenTakingARange_thenTheMessageNamesItsValueAndRange() {
        BlockShape shape = BlockShape.kv(2, 4, 8, 16, Dtype.BF16);
        assertRefused(() -> shape.layerSlice(2), "layer = 2 is out of range; allowed: 0 to 1");
        assertRefused(() -> shape.headSlice(0, 2, 0), "plane = 2 is out of range; allowed: 0 to 1");
        assertRefused(() -> shape.headSlice(0, 0, 4), "head = 4 is out of range; allowed: 0 to 3");
        assertRefused(() -> shape.tokenRow(0, 0, 0, -1), "token = -1 is out of range; allowed: 0 to 15");
        assertRefused(
                () -> BlockShape.mla(1, 8, 4, Dtype.F32).tokenRow(0, 1, 0, 0), "plane = 1 is out of range; allowed: 0");
    }

    @Test
    void givenAMalformedRange_whenMade_thenTheMessageNamesItsValueAndRange() {
        assertRefused(() -> new ByteRange(-1, 1), "offset = -1 is out of range; allowed: 0 to 268435456");
        assertRefused(() -> new ByteRange(0, 0), "bytes = 0 is out of range; allowed: 1 to 268435456");
        assertRefused(() -> new StridedRange(0, 4, 8, 0), "pieces = 0 is out of range; allowed: 1 to 2147483647");
        assertRefused(() -> new StridedRange(0, 4, 4, 2), "strideBytes = 4 is out of range; allowed: 5 to 268435456");
        assertRefused(() -> new StridedRange(0, 4, 8, 1), "strideBytes of one piece = 8 is out of range; allowed: 4");
        assertRefused(() -> new StridedRange(0, 4, 8, 2).piece(2), "piece = 2 is out of range; allowed: 0 to 1");
    }

    private static void assertTiles(List<ByteRange> ranges, long bytes) {
        long at = 0;
        for (ByteRange range : ranges.stream()
                .sorted(Comparator.comparingLong(ByteRange::offset))
                .toList()) {
            assertThat(range.offset()).isEqualTo(at);
            at = range.end();
        }
        assertThat(at).isEqualTo(bytes);
    }

    private static void assertRefused(Runnable action, String message) {
        assertThatThrownBy(action::run)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(message);
    }

    private static Stream<BlockShape> shapes() {
        System.out.println("BlockShapeTest seed " + SEED);
        Random random = new Random(SEED);
        return Stream.generate(() -> new BlockShape(
                        1 + random.nextInt(4),
                        1 + random.nextInt(2),
                        1 + random.nextInt(5),
                        1 + random.nextInt(7),
                        1 + random.nextInt(9),
                        any(random, Dtype.values()),
                        any(random, AxisOrder.values())))
                .limit(60);
    }

    private static <T> T any(Random random, T[] choices) {
        return choices[random.nextInt(choices.length)];
    }
}
