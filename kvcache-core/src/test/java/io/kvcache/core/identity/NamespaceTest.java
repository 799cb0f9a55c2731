package io.kvcache.core.identity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.hash.Sha256;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.function.BiFunction;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class NamespaceTest {

    private static final BlockShape SHAPE = BlockShape.kv(32, 8, 128, 16, Dtype.BF16);

    /// The optional texts, in the order in which they enter the digest.
    private static final List<BiFunction<Namespace.Builder, String, Namespace.Builder>> TEXTS = List.of(
            Namespace.Builder::revision,
            Namespace.Builder::dtype,
            Namespace.Builder::layout,
            Namespace.Builder::adapter,
            Namespace.Builder::tenant,
            Namespace.Builder::salt);

    @Test
    void givenTheFirstVersionOfTheEncoding_whenDigested_thenTheDigestNeverChanges() {
        Namespace namespace = Namespace.builder("llama")
                .revision("r")
                .dtype("d")
                .layout("l")
                .adapter("a")
                .tenant("t")
                .salt("s")
                .part(new Part(1, 2, PartKind.WINDOW, 1024, SHAPE, RopeOrigin.NONE))
                .build();
        assertThat(namespace.digest()).isEqualTo(digestByHand());
        assertThat(HexFormat.of().formatHex(Namespace.objects("o", "").digest()))
                .isEqualTo("f09a2415539ea5bd33a93c367612a6739a3be687f7885773b6d45342c7f003ca");
    }

    @Test
    void givenNamespacesThatDifferInOneThing_whenDigested_thenAllDigestsDiffer() {
        List<Namespace> variants = new ArrayList<>();
        Namespace base = Namespace.of("m", SHAPE);
        variants.add(base);
        variants.add(Namespace.of("n", SHAPE));
        for (BiFunction<Namespace.Builder, String, Namespace.Builder> text : TEXTS) {
            variants.add(text.apply(base.toBuilder(), "x").build());
            variants.add(text.apply(base.toBuilder(), "xy").build());
        }
        for (Part part : variedParts()) {
            variants.add(base.toBuilder().parts(List.of(part)).build());
        }
        Part full = Part.full(SHAPE);
        Part second = Part.full(0, 1, SHAPE);
        variants.add(base.toBuilder().parts(List.of(full, second)).build());
        variants.add(base.toBuilder().parts(List.of(second, full)).build());
        variants.add(base.toBuilder().parts(List.of()).build());
        assertThat(variants).doesNotHaveDuplicates();
        assertThat(variants)
                .extracting(each -> HexFormat.of().formatHex(each.digest()))
                .doesNotHaveDuplicates();
    }

    @Test
    void givenACharacterMovedToTheNextField_whenDigested_thenTheDigestDiffers() {
        for (int i = 0; i + 1 < TEXTS.size(); i++) {
            Namespace left = TEXTS.get(i + 1)
                    .apply(TEXTS.get(i).apply(Namespace.builder("m"), "ab"), "c")
                    .build();
            Namespace right = TEXTS.get(i + 1)
                    .apply(TEXTS.get(i).apply(Namespace.builder("m"), "a"), "bc")
                    .build();
            assertThat(left).isNotEqualTo(right);
        }
        assertThat(Namespace.builder("ab").revision("c").build())
                .isNotEqualTo(Namespace.builder("a").revision("bc").build());
    }

    @Test
    void givenEqualFields_whenCompared_thenNamespacesAreEqual() {
        Namespace one = Namespace.of("m", SHAPE);
        assertThat(one.toBuilder().build()).isEqualTo(one).hasSameHashCodeAs(one);
        assertThat(one.parts()).containsExactly(Part.full(SHAPE));
        assertThat(one.dtype()).isEqualTo("bf16");
        assertThat(one.blockTokens()).isEqualTo(16);
    }

    @Test
    void givenItsDigestAndBuilderChanged_whenReadAgain_thenTheNamespaceIsTheSame() {
        Namespace.Builder builder = Namespace.builder("m").part(Part.full(SHAPE));
        Namespace namespace = builder.build();
        byte[] before = namespace.digest();
        Arrays.fill(namespace.digest(), (byte) 0);
        builder.part(Part.full(0, 1, SHAPE));
        assertThat(namespace.digest()).isEqualTo(before);
        assertThat(namespace.parts()).hasSize(1);
    }

    @Test
    void givenASalt_whenPrintedOrRefused_thenItIsNotShown() {
        Namespace namespace = Namespace.builder("m").tenant("acme").salt("hush").build();
        assertThat(namespace.toString()).contains("m, tenant acme").doesNotContain("hush");
        assertThatThrownBy(() -> namespace.toBuilder().salt("hush".repeat(200)).build())
                .hasMessage("salt = (hidden) takes 800 bytes; allowed: none, or 1 to 512 bytes of UTF-8, not blank");
    }

    @Test
    void givenAnObjectNamespace_whenAskedForBlockTokens_thenItSaysItHasNone() {
        Namespace objects = Namespace.objects("snapshots", "acme");
        assertThat(objects.parts()).isEmpty();
        assertThat(objects.tenant()).isEqualTo("acme");
        assertThatThrownBy(objects::blockTokens)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageStartingWith("namespace snapshots, tenant acme (")
                .hasMessageEndingWith(") has no parts: it holds objects, not blocks of tokens");
    }

    @Test
    void givenABadText_whenBuilding_thenTheMessageNamesFieldValueAndRange() {
        assertRefused(Namespace.builder(""), "model = \"\" is blank; allowed: 1 to 512 bytes of UTF-8, not blank");
        assertRefused(
                Namespace.builder("m").tenant(" \t"),
                "tenant = \" \t\" is blank; allowed: none, or 1 to 512 bytes of UTF-8, not blank");
        assertRefused(
                Namespace.builder("m").adapter("é".repeat(257)),
                "adapter = \"" + "é".repeat(40) + "…\" takes 514 bytes; allowed: none, or 1 to 512 bytes of UTF-8,"
                        + " not blank");
        assertRefused(
                Namespace.builder("m").revision("a\uD800"),
                "revision holds half a surrogate pair; allowed: well-formed Unicode");
        assertThat(Namespace.builder("m").adapter("é".repeat(256)).build().adapter())
                .hasSize(256);
    }

    @Test
    void givenPartsThatDisagree_whenBuilding_thenTheMessageNamesThem() {
        Part other = Part.full(0, 1, BlockShape.kv(32, 8, 128, 32, Dtype.BF16));
        assertRefused(
                Namespace.builder("m").part(Part.full(SHAPE)).part(other),
                "blockTokens = 32 of FULL part (group 0, rank 1) is out of range; allowed: 16, as in the first part");
        assertRefused(
                Namespace.builder("m").part(Part.full(SHAPE)).part(Part.full(SHAPE)),
                "two parts have group = 0, rank = 0; allowed: one");
        Namespace.Builder many = Namespace.builder("m");
        for (int i = 0; i <= Namespace.MAX_PARTS; i++) {
            many.part(Part.full(i / 1024, i % 1024, SHAPE));
        }
        assertRefused(many, "number of parts = 1025 is out of range; allowed: 0 to 1024");
    }

    @ParameterizedTest
    @MethodSource("badParts")
    void givenABadPart_whenMade_thenTheMessageNamesFieldValueAndRange(Runnable making, String message) {
        assertThatThrownBy(making::run)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(message);
    }

    @Test
    void givenAStatePart_whenAskedForItsBytes_thenItIsOneTokenRow() {
        Part state = new Part(1, 0, PartKind.STATE, 0, SHAPE, RopeOrigin.NONE);
        assertThat(state.bytes()).isEqualTo(SHAPE.tokenBytes());
        assertThat(Part.full(SHAPE).bytes()).isEqualTo(SHAPE.bytes());
        assertThat(RopeOrigin.NONE.isRotated()).isFalse();
        assertThat(RopeOrigin.FROM_ZERO.isRotated()).isTrue();
    }

    private static Stream<Object[]> badParts() {
        return Stream.of(
                bad(() -> Part.full(256, 0, SHAPE), "group = 256 is out of range; allowed: 0 to 255"),
                bad(() -> Part.full(0, -1, SHAPE), "rank = -1 is out of range; allowed: 0 to 1023"),
                bad(
                        () -> new Part(0, 0, PartKind.FULL, 1, SHAPE, RopeOrigin.NONE),
                        "window of a FULL part = 1 is out of range; allowed: 0"),
                bad(
                        () -> new Part(0, 0, PartKind.WINDOW, 0, SHAPE, RopeOrigin.NONE),
                        "window of a WINDOW part = 0 is out of range; allowed: 1 to 16777216"),
                bad(() -> new RopeOrigin(-2), "basePosition = -2 is out of range; allowed: -1 to 2147483647"));
    }

    private static Object[] bad(Runnable making, String message) {
        return new Object[] {making, message};
    }

    /// Each differs from the full part of `SHAPE` in one number.
    private static List<Part> variedParts() {
        RopeOrigin rotation = RopeOrigin.FROM_ZERO;
        List<Part> parts = new ArrayList<>(List.of(
                Part.full(1, 0, SHAPE),
                Part.full(0, 1, SHAPE),
                new Part(0, 0, PartKind.STATE, 0, SHAPE, rotation),
                new Part(0, 0, PartKind.WINDOW, 1, SHAPE, rotation),
                new Part(0, 0, PartKind.WINDOW, 2, SHAPE, rotation),
                new Part(0, 0, PartKind.FULL, 0, SHAPE, RopeOrigin.NONE),
                new Part(0, 0, PartKind.FULL, 0, SHAPE, new RopeOrigin(7))));
        Stream.of(
                        BlockShape.kv(33, 8, 128, 16, Dtype.BF16),
                        BlockShape.kv(32, 9, 128, 16, Dtype.BF16),
                        BlockShape.kv(32, 8, 129, 16, Dtype.BF16),
                        BlockShape.kv(32, 8, 128, 17, Dtype.BF16),
                        BlockShape.kv(32, 8, 128, 16, Dtype.F16),
                        SHAPE.withOrder(AxisOrder.LAYER_KV_TOKEN_HEAD),
                        new BlockShape(32, 1, 8, 128, 16, Dtype.BF16, AxisOrder.LAYER_KV_HEAD_TOKEN))
                .map(Part::full)
                .forEach(parts::add);
        return parts;
    }

    /// The namespace of the golden test, encoded without the code under test.
    private static byte[] digestByHand() {
        StringBuilder hex = new StringBuilder();
        for (String text : List.of("kvcache namespace v1", "llama", "r", "d", "l", "a", "t", "s")) {
            hex.append(text(text));
        }
        hex.append("00000001"); // parts
        hex.append("00000001").append("00000002").append(text("WINDOW")).append("00000400"); // group to window
        hex.append("ffffffff"); // no rotation
        hex.append("00000020").append("00000002").append("00000008").append("00000080"); // layers to headDim
        hex.append("00000010").append(text("BF16")).append(text("LAYER_KV_HEAD_TOKEN"));
        return Sha256.newDigest().digest(HexFormat.of().parseHex(hex));
    }

    private static String text(String ascii) {
        StringBuilder hex = new StringBuilder("%08x".formatted(ascii.length()));
        ascii.chars().forEach(character -> hex.append("%02x".formatted(character)));
        return hex.toString();
    }

    private static void assertRefused(Namespace.Builder builder, String message) {
        assertThatThrownBy(builder::build)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(message);
    }
}
