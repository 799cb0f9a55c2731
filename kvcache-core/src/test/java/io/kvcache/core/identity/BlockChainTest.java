package io.kvcache.core.identity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.hash.Sha256;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BlockChainTest {

    private static final long SEED = 4242;
    private static final Namespace NAMESPACE = namespace(4);

    @Test
    void givenKnownTokens_whenHashed_thenTheKeysNeverChange() {
        Namespace namespace = namespace(16);
        BlockChain chain = BlockChain.of(namespace, IntStream.range(0, 32).toArray());
        assertThat(keys(chain))
                .isEqualTo(naive(namespace, IntStream.range(0, 32).toArray()));
        assertThat(keys(chain))
                .extracting(BlockKey::toString)
                .containsExactly("75bb014ed2ddd7eb3690f227536a08d3", "c22e7aa0fdb5bacbded9b45ddcf45054");
    }

    @Test
    void givenASection_whenCompared_thenItHasTheChainsKeysInAnotherNamespace() {
        Namespace other = namespace(4).toBuilder().layout("sections").build();
        long hi = ByteBuffer.wrap(other.digest()).getLong();
        long lo = ByteBuffer.wrap(other.digest()).getLong(Long.BYTES);
        BlockChain tokens = BlockChain.of(NAMESPACE, IntStream.range(0, 43).toArray());
        List<byte[]> engineKeys = IntStream.range(0, 10)
                .mapToObj(i -> ByteBuffer.allocate(12).putInt(7).putLong(i).array())
                .toList();
        for (BlockChain chain : List.of(tokens, BlockChain.ofEngineKeys(NAMESPACE, engineKeys))) {
            BlockChain section = chain.section(other, 3, 9).prefix(5);
            assertThat(section.length()).isEqualTo(5);
            assertThat(section.tokens()).isEqualTo(20);
            assertThat(section.namespace()).isEqualTo(other);
            for (int i = 0; i < 5; i++) {
                assertThat(section.key(i)).isEqualTo(new BlockKey(chain.keyHi(3 + i) ^ hi, chain.keyLo(3 + i) ^ lo));
                assertThat(section.engineHash64(i)).isEqualTo(chain.engineHash64(3 + i));
                assertThat(section.engineHash(i)).isEqualTo(chain.engineHash(3 + i));
            }
            assertThatThrownBy(() -> section.extend(1)).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> section.section(other, 0, 1)).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> section.key(5)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> chain.section(other, 3, 11)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> chain.section(namespace(8), 0, 1))
                    .hasMessage("blocks of a section have 8 tokens; allowed: 4, as in its chain");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 16, 64, 256})
    void givenRandomTokens_whenHashed_thenKeysAreThoseOfTheFormula(int blockTokens) {
        Random random = seeded("formula");
        Namespace namespace = namespace(blockTokens);
        for (int round = 0; round < 50; round++) {
            int[] tokens = tokens(random, random.nextInt(4 * blockTokens + 40));
            BlockChain chain = BlockChain.of(namespace, tokens);
            assertThat(keys(chain)).isEqualTo(naive(namespace, tokens));
            assertThat(chain.tokens()).isEqualTo(tokens.length);
            assertThat(chain.length()).isEqualTo(tokens.length / blockTokens);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3, 16})
    void givenAnyWayOfExtending_whenCompared_thenEveryChainIsAsIfHashedAtOnce(int blockTokens) {
        Random random = seeded("extend");
        Namespace namespace = namespace(blockTokens);
        List<BlockChain> chains = new ArrayList<>(List.of(BlockChain.of(namespace, new int[0])));
        List<int[]> sequences = new ArrayList<>(List.of(new int[0]));
        for (int step = 0; step < 400; step++) {
            int from = random.nextInt(chains.size());
            int[] before = sequences.get(from);
            BlockChain chain = chains.get(from);
            if (random.nextInt(4) == 0) {
                int blocks = random.nextInt(chain.length() + 1);
                chains.add(chain.prefix(blocks));
                sequences.add(Arrays.copyOf(before, blocks * blockTokens));
            } else {
                int[] more = tokens(random, random.nextInt(3 * blockTokens));
                chains.add(chain.extend(more));
                sequences.add(concat(before, more));
            }
        }
        for (int i = 0; i < chains.size(); i++) {
            assertThat(keys(chains.get(i))).isEqualTo(naive(namespace, sequences.get(i)));
            assertThat(chains.get(i).tokens()).isEqualTo(sequences.get(i).length);
        }
    }

    /// Digests lie in pieces of 256.
    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void givenChainsOfManyPieces_whenForkedAnywhere_thenEveryChainIsAsIfHashedAtOnce(int blockTokens) {
        Random random = seeded("pieces");
        Namespace namespace = namespace(blockTokens);
        int[] trunk = tokens(random, 1500);
        BlockChain chain = BlockChain.of(namespace, trunk);
        for (int fork = 0; fork < 60; fork++) {
            int any = random.nextInt(chain.length() + 1);
            int blocks = fork % 4 == 0 ? any / 256 * 256 : any;
            int[] more = tokens(random, random.nextInt(900));
            BlockChain compact = chain.compactPrefix(blocks);
            BlockChain grown = random.nextBoolean()
                    ? compact.extend(more)
                    : chain.prefix(blocks).extend(more);
            int[] sequence = concat(Arrays.copyOf(trunk, blocks * blockTokens), more);
            assertThat(keys(compact)).isEqualTo(keys(chain).subList(0, blocks));
            assertThat(keys(grown)).isEqualTo(naive(namespace, sequence));
            if (fork % 8 == 0) {
                chain = grown;
                trunk = sequence;
            }
        }
        assertThat(keys(chain)).isEqualTo(naive(namespace, trunk));
    }

    @Test
    void givenOneTokenAtATime_whenExtended_thenABlockAppearsWithItsLastToken() {
        BlockChain chain = BlockChain.of(NAMESPACE, new int[] {1, 2, 3});
        assertThat(chain.length()).isZero();
        BlockChain longer = chain.extend(4);
        assertThat(longer.length()).isEqualTo(1);
        assertThat(longer.key(0))
                .isEqualTo(BlockChain.of(NAMESPACE, new int[] {1, 2, 3, 4}).key(0));
        assertThat(longer.extend())
                .extracting(BlockChain::length, BlockChain::tokens)
                .containsExactly(1, 4);
    }

    @Test
    void givenTwoChainsGrownFromOne_whenCompared_thenTheyShareKeysOnlyUpToThere() {
        BlockChain common = BlockChain.of(NAMESPACE, new int[] {1, 2, 3, 4}).extend(5, 6, 7, 8);
        BlockChain left = common.extend(9, 9, 9, 9);
        BlockChain right = common.extend(10, 10, 10, 10);
        assertThat(keys(left).subList(0, 2))
                .isEqualTo(keys(right).subList(0, 2))
                .isEqualTo(keys(common));
        assertThat(left.key(2)).isNotEqualTo(right.key(2));
        assertThat(keys(left)).isEqualTo(naive(NAMESPACE, new int[] {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9}));
    }

    @Test
    void givenOneChainExtendedByManyThreads_whenCompared_thenEachHasItsOwnKeys() {
        int[] common = IntStream.range(0, 64).toArray();
        BlockChain grown = BlockChain.of(NAMESPACE, common).extend(common);
        int[] before = concat(common, common);
        List<BlockChain> chains = IntStream.range(0, 512)
                .parallel()
                .mapToObj(i -> grown.extend(i, i, i, i))
                .toList();
        for (int i = 0; i < chains.size(); i++) {
            assertThat(keys(chains.get(i))).isEqualTo(naive(NAMESPACE, concat(before, new int[] {i, i, i, i})));
        }
    }

    @Test
    void givenAnEarlierTokenChanged_whenHashed_thenEveryLaterKeyDiffers() {
        int[] tokens = IntStream.range(0, 40).toArray();
        List<BlockKey> before = keys(BlockChain.of(NAMESPACE, tokens));
        tokens[5] = 99;
        List<BlockKey> after = keys(BlockChain.of(NAMESPACE, tokens));
        assertThat(after.getFirst()).isEqualTo(before.getFirst());
        assertThat(after.subList(1, 10)).doesNotContainAnyElementsOf(before);
    }

    @Test
    void givenTokensChangedByTheCaller_whenExtended_thenTheChainRemembersWhatItWasGiven() {
        int[] tokens = {1, 2, 3};
        BlockChain chain = BlockChain.of(NAMESPACE, tokens);
        Arrays.fill(tokens, 0);
        assertThat(keys(chain.extend(4))).isEqualTo(naive(NAMESPACE, new int[] {1, 2, 3, 4}));
    }

    @Test
    void givenTwoNamespaces_whenHashingTheSameTokens_thenNoKeyIsShared() {
        int[] tokens = IntStream.range(0, 40).toArray();
        List<BlockKey> other =
                keys(BlockChain.of(NAMESPACE.toBuilder().tenant("other").build(), tokens));
        assertThat(keys(BlockChain.of(NAMESPACE, tokens))).doesNotContainAnyElementsOf(other);
    }

    @Test
    void givenEngineKeys_whenHashed_thenKeysAreThoseOfTheFormulaAndTheEnginesAreKept() {
        byte[] first = HexFormat.of().parseHex("aa" + "0102030405060708");
        byte[] second = {0x7f};
        byte[] third = HexFormat.of().parseHex("00ff");
        BlockChain chain = BlockChain.ofEngineKeys(NAMESPACE, List.of(first, second, third));

        assertThat(chain.length()).isEqualTo(3);
        assertThat(chain.tokens()).isEqualTo(12);
        for (int i = 0; i < 3; i++) {
            byte[] engineKey = List.of(first, second, third).get(i);
            MessageDigest sha = Sha256.newDigest();
            sha.update(NAMESPACE.digest());
            assertThat(chain.key(i)).isEqualTo(BlockKey.ofDigest(sha.digest(engineKey)));
            assertThat(chain.engineHash(i)).isEqualTo(engineKey);
        }
        assertThat(chain.engineHash64(0)).isEqualTo(0x0102030405060708L);
        assertThat(chain.engineHash64(1)).isEqualTo(0x7f);
        assertThat(chain.engineHash64(2)).isEqualTo(0xff);
        assertThat(chain.prefix(2).engineHash(1)).isEqualTo(second);
        assertThat(BlockChain.ofEngineKeys(NAMESPACE, List.of()).length()).isZero();
    }

    @Test
    void givenEngineKeysChangedByTheCaller_whenRead_thenTheChainKeepsWhatItWasGiven() {
        byte[] key = {1, 2, 3};
        BlockChain chain = BlockChain.ofEngineKeys(NAMESPACE, List.of(key));
        key[0] = 9;
        byte[] read = chain.engineHash(0);
        assertThat(read).containsExactly(1, 2, 3);
    }

    @Test
    void givenAChainOfTokens_whenAskedForEngineHashes_thenThereAreNone() {
        BlockChain chain = BlockChain.of(NAMESPACE, new int[4]);
        assertThat(chain.engineHash(0)).isNull();
        assertThat(chain.engineHash64(0)).isZero();
    }

    @Test
    void givenABadRequest_whenMade_thenTheMessageNamesIt() {
        BlockChain chain = BlockChain.of(NAMESPACE, new int[9]);
        assertThatThrownBy(() -> chain.prefix(3)).hasMessage("blocks = 3 is out of range; allowed: 0 to 2");
        assertThatThrownBy(() -> chain.prefix(-1)).hasMessage("blocks = -1 is out of range; allowed: 0 to 2");
        assertThatThrownBy(() -> chain.key(2)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> chain.prefix(1).keyHi(1)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> BlockChain.ofEngineKeys(NAMESPACE, List.of(new byte[0])))
                .hasMessage("engine key bytes = 0 is out of range; allowed: 1 to 4096");
        assertThatThrownBy(() -> BlockChain.ofEngineKeys(NAMESPACE, List.of(new byte[4097])))
                .hasMessage("engine key bytes = 4097 is out of range; allowed: 1 to 4096");
        assertThatThrownBy(() ->
                        BlockChain.ofEngineKeys(NAMESPACE, List.of(new byte[1])).extend(1))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("a chain of engine keys cannot be extended by tokens");
        assertThatThrownBy(() -> BlockChain.of(Namespace.objects("o", ""), new int[1]))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("has no parts");
    }

    @Test
    void givenAChain_whenPrinted_thenItSaysHowLongItIs() {
        BlockChain chain = BlockChain.of(NAMESPACE, new int[6]);
        assertThat(chain)
                .asString()
                .startsWith("chain of 1 blocks, 6 tokens, last key " + chain.key(0) + ", namespace m (");
        assertThat(chain.prefix(0)).asString().startsWith("chain of 0 blocks, 0 tokens, namespace m (");
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void givenNamedBlocks_whenExtendedAndForked_thenEachChainHasItsOwnKeysAndHashes(long seed) {
        Random random = new Random(seed);
        List<BlockChain> chains =
                new ArrayList<>(List.of(BlockChain.ofKeysAndHashes(NAMESPACE, ByteBuffer.allocate(0))));
        List<List<long[]>> expected = new ArrayList<>(List.of(List.of()));
        for (int step = 0; step < 200; step++) {
            int from = random.nextInt(chains.size());
            int kept = random.nextInt(chains.get(from).length() + 1);
            List<long[]> blocks = new ArrayList<>(expected.get(from).subList(0, kept));
            ByteBuffer more = ByteBuffer.allocate(random.nextInt(5) * BlockChain.KEY_AND_HASH_BYTES);
            while (more.hasRemaining()) {
                long[] block = {random.nextLong(), random.nextLong(), random.nextLong()};
                more.putLong(block[0]).putLong(block[1]).putLong(block[2]);
                blocks.add(block);
            }
            chains.add(chains.get(from).prefix(kept).extendKeysAndHashes(more.flip()));
            expected.add(blocks);
        }
        for (int i = 0; i < chains.size(); i++) {
            BlockChain chain = chains.get(i);
            assertThat(chain.length())
                    .as("seed %d", seed)
                    .isEqualTo(expected.get(i).size());
            for (int index = 0; index < chain.length(); index++) {
                assertThat(new long[] {chain.keyHi(index), chain.keyLo(index), chain.engineHash64(index)})
                        .isEqualTo(expected.get(i).get(index));
                assertThat(chain.engineHash(index)).isNull();
            }
        }
    }

    @Test
    void givenNamedBlocks_whenExtendedByTokensOrHalfABlock_thenRefused() {
        BlockChain named = BlockChain.ofKeysAndHashes(NAMESPACE, ByteBuffer.allocate(48));
        assertThat(named.length()).isEqualTo(2);
        assertThatThrownBy(() -> named.extend(1)).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> named.extendKeysAndHashes(ByteBuffer.allocate(23)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("24");
        BlockChain tokens = BlockChain.of(NAMESPACE, new int[8]);
        assertThatThrownBy(() -> tokens.extendKeysAndHashes(ByteBuffer.allocate(24)))
                .isInstanceOf(IllegalStateException.class);
    }

    @Test
    void givenTwoChains_whenTheirCommonPrefixIsAsked_thenItEndsWhereTheyDiffer() {
        Random random = seeded("common prefix");
        int[] tokens = tokens(random, 4 * 40);
        BlockChain chain = BlockChain.of(NAMESPACE, tokens);
        for (int run = 0; run < 200; run++) {
            int differing = random.nextInt(41);
            int[] changed = Arrays.copyOf(tokens, 4 * random.nextInt(41));
            boolean differs = 4 * differing < changed.length;
            if (differs) {
                changed[4 * differing]++;
            }
            BlockChain other = BlockChain.of(NAMESPACE, changed);
            int common = differs ? differing : other.length();
            BlockChain named = BlockChain.ofKeys(NAMESPACE, keys(other));
            assertThat(chain.commonPrefix(other)).isEqualTo(common);
            assertThat(other.commonPrefix(chain)).isEqualTo(common);
            assertThat(named.commonPrefix(chain)).isEqualTo(common);
            assertThat(chain.commonPrefix(chain.prefix(differing))).isEqualTo(differing);
        }
    }

    @Test
    void givenListsOfKeysThatDifferInTheMiddle_whenTheirCommonPrefixIsAsked_thenItEndsThere() {
        List<BlockKey> keys =
                IntStream.range(0, 9).mapToObj(i -> new BlockKey(i, i)).toList();
        List<BlockKey> others = new ArrayList<>(keys);
        others.set(3, new BlockKey(3, 4));
        assertThat(BlockChain.ofKeys(NAMESPACE, keys).commonPrefix(BlockChain.ofKeys(NAMESPACE, others)))
                .isEqualTo(3);
    }

    private static List<BlockKey> naive(Namespace namespace, int[] tokens) {
        List<BlockKey> keys = new ArrayList<>();
        byte[] digest = namespace.digest();
        int blockTokens = namespace.blockTokens();
        for (int from = 0; from + blockTokens <= tokens.length; from += blockTokens) {
            ByteBuffer input = ByteBuffer.allocate(32 + 4 * blockTokens).order(ByteOrder.LITTLE_ENDIAN);
            input.put(digest);
            input.asIntBuffer().put(tokens, from, blockTokens);
            digest = Sha256.newDigest().digest(input.array());
            keys.add(BlockKey.ofDigest(digest));
        }
        return keys;
    }

    private static List<BlockKey> keys(BlockChain chain) {
        return IntStream.range(0, chain.length()).mapToObj(chain::key).toList();
    }

    private static Random seeded(String what) {
        System.out.println("BlockChainTest " + what + " seed " + SEED);
        return new Random(SEED);
    }

    private static int[] tokens(Random random, int count) {
        return random.ints(count).toArray();
    }

    private static int[] concat(int[] first, int[] second) {
        return IntStream.concat(Arrays.stream(first), Arrays.stream(second)).toArray();
    }

    private static Namespace namespace(int blockTokens) {
        return Namespace.of("m", BlockShape.kv(2, 2, 8, blockTokens, Dtype.BF16));
    }
}
