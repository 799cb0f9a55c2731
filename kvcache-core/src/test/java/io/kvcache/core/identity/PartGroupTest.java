package io.kvcache.core.identity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

final class PartGroupTest {

    private static final int BLOCK = 16;
    private static final int MAPS = 1_000_000;
    private static final int MAX_BLOCKS = 24;

    private static BlockShape shape(int blockTokens) {
        return BlockShape.kv(2, 1, 8, blockTokens, Dtype.BF16);
    }

    private static Part part(int group, PartKind kind, int window, int blockTokens) {
        return new Part(group, 0, kind, window, shape(blockTokens), RopeOrigin.FROM_ZERO);
    }

    private static Namespace namespace(Part... parts) {
        return Namespace.builder("hybrid").parts(List.of(parts)).build();
    }

    private static Namespace randomNamespace(SplittableRandom random) {
        List<Part> parts = new ArrayList<>(List.of(part(0, PartKind.FULL, 0, BLOCK)));
        for (int group = random.nextInt(1, 4); group > 0; group--) {
            int tokens = BLOCK * random.nextInt(1, 4);
            parts.add(
                    random.nextBoolean()
                            ? part(group, PartKind.STATE, 0, tokens)
                            : part(group, PartKind.WINDOW, random.nextInt(1, 6 * BLOCK), tokens));
        }
        return Namespace.builder("hybrid").parts(parts).build();
    }

    /// Whether a match of these blocks has what it needs, token by token.
    private static boolean isWhole(Namespace namespace, int blocks, List<BitSet> here) {
        for (int i = 0; i < namespace.groups().size(); i++) {
            PartGroup group = namespace.groups().get(i);
            int tokens = blocks * BLOCK;
            int entryTokens = group.every() * BLOCK;
            if (tokens % entryTokens != 0) {
                return false;
            }
            int first = group.kind() == PartKind.STATE
                    ? tokens - 1
                    : tokens - (group.parts().getFirst().window() - 1);
            for (int token = Math.max(0, first); token < tokens; token++) {
                if (!here.get(i).get(token / entryTokens)) {
                    return false;
                }
            }
        }
        return true;
    }

    @Test
    void givenRandomPresence_whenMatched_thenTheEndIsTheLongestThatHasAll() {
        SplittableRandom random = new SplittableRandom(7);
        Namespace namespace = randomNamespace(random);
        for (int map = 0; map < MAPS; map++) {
            namespace = map % 1000 == 0 ? randomNamespace(random) : namespace;
            int full = random.nextInt(MAX_BLOCKS + 1);
            int present = random.nextInt(1, 10);
            List<BitSet> here = new ArrayList<>();
            for (PartGroup group : namespace.groups()) {
                BitSet entries = new BitSet();
                IntStream.range(0, group.entries(MAX_BLOCKS))
                        .filter(_ -> random.nextInt(10) < present)
                        .forEach(entries::set);
                here.add(entries);
            }
            int expected = full;
            while (!isWhole(namespace, expected, here)) {
                expected--;
            }
            int found = PartGroup.matchEnd(
                    namespace.groups(), full, (group, entry) -> here.get(group).get(entry));
            if (found != expected) {
                assertThat(found)
                        .as("%s of %s blocks, %s", namespace.parts(), full, here)
                        .isEqualTo(expected);
            }
        }
    }

    @Test
    void givenAllIsHere_whenMatched_thenOnlyTheLastWindowAndOneStateAreAskedFor() {
        Namespace namespace = namespace(
                part(0, PartKind.FULL, 0, BLOCK),
                part(1, PartKind.WINDOW, 128, BLOCK),
                part(2, PartKind.STATE, 0, 4 * BLOCK));
        List<String> asked = new ArrayList<>();
        int end = PartGroup.matchEnd(namespace.groups(), 8192, (group, entry) -> asked.add(group + ":" + entry));
        assertThat(end).isEqualTo(8192);
        assertThat(asked)
                .containsExactlyInAnyOrder(
                        "0:8184", "0:8185", "0:8186", "0:8187", "0:8188", "0:8189", "0:8190", "0:8191", "1:2047");
    }

    @Test
    void givenParts_whenGrouped_thenThoseOfOneKindWindowAndSpacingShareAnEntry() {
        Namespace namespace = Namespace.builder("m")
                .part(Part.full(0, 0, shape(BLOCK)))
                .part(part(1, PartKind.WINDOW, 128, BLOCK))
                .part(Part.full(0, 1, shape(BLOCK)))
                .part(part(2, PartKind.WINDOW, 128, BLOCK))
                .part(part(3, PartKind.WINDOW, 256, BLOCK))
                .part(part(4, PartKind.STATE, 0, 8 * BLOCK))
                .build();
        long bytes = shape(BLOCK).bytes();
        assertThat(namespace.blockTokens()).isEqualTo(BLOCK);
        assertThat(namespace.blockBytes()).isEqualTo(2 * bytes);
        assertThat(namespace.groups()).extracting(PartGroup::every).containsExactly(1, 1, 8);
        assertThat(namespace.groups())
                .extracting(group -> group.namespace().blockBytes())
                .containsExactly(2 * bytes, bytes, shape(BLOCK).tokenBytes());
        assertThat(namespace.groupOf(0)).isNull();
        assertThat(namespace.groupOf(2)).isNull();
        assertThat(namespace.groupOf(3)).isEqualTo(namespace.groups().getFirst());
        assertThat(namespace.groups()).allMatch(group -> group.namespace().isOfGroup());
        assertThat(namespace.groups())
                .allMatch(group -> group.namespace().groups().isEmpty());
    }

    @Test
    void givenAChain_whenEntriesAreNamed_thenEachKeyIsItsOwnAndFollowsFromTheBlock() {
        Namespace namespace = namespace(
                part(0, PartKind.FULL, 0, BLOCK),
                part(1, PartKind.WINDOW, 128, BLOCK),
                part(2, PartKind.STATE, 0, 2 * BLOCK));
        BlockChain chain =
                BlockChain.of(namespace, IntStream.range(0, 8 * BLOCK).toArray());
        Set<BlockKey> keys = new HashSet<>();
        IntStream.range(0, 8).forEach(index -> keys.add(chain.key(index)));
        for (PartGroup group : namespace.groups()) {
            for (int entry = 0; entry < group.entries(8); entry++) {
                BlockChain single = chain.entry(group, entry);
                int last = (entry + 1) * group.every() - 1;
                assertThat(single.length()).isEqualTo(1);
                assertThat(single.namespace()).isEqualTo(group.namespace());
                assertThat(single.keyHi(0) ^ group.keyMask().hi()).isEqualTo(chain.keyHi(last));
                assertThat(single.keyLo(0) ^ group.keyMask().lo()).isEqualTo(chain.keyLo(last));
                assertThat(group.entryBehind(last)).isEqualTo(entry);
                keys.add(single.key(0));
            }
        }
        assertThat(keys).hasSize(8 + 8 + 4);
    }

    @Test
    void givenNoFullPart_whenAsked_thenBlocksAreThoseOfTheShortestPart() {
        Namespace namespace = namespace(part(0, PartKind.STATE, 0, 4 * BLOCK), part(1, PartKind.WINDOW, 40, 2 * BLOCK));
        assertThat(namespace.blockTokens()).isEqualTo(2 * BLOCK);
        assertThat(namespace.blockBytes()).isEqualTo(1);
        assertThat(namespace.groups()).extracting(PartGroup::every).containsExactly(2, 1);
    }

    @Test
    void givenABadSpacingOrPlace_whenUsed_thenTheErrorNamesValueAndRange() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> namespace(part(0, PartKind.FULL, 0, BLOCK), part(1, PartKind.STATE, 0, 40)))
                .withMessage("blockTokens = 40 of STATE part (group 1, rank 0) is out of range;"
                        + " allowed: multiples of 16");
        Namespace namespace = namespace(part(0, PartKind.FULL, 0, BLOCK), part(1, PartKind.STATE, 0, 4 * BLOCK));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> namespace.groups().getFirst().entryBehind(4))
                .withMessage("block 4 has no entry of STATE parts behind it; allowed: block 3 and each 4th after it");
    }
}
