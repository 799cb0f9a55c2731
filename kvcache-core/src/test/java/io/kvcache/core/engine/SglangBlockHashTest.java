package io.kvcache.core.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.hash.Sha256;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// The expected values agree with those of the SGLang router's own tests.
class SglangBlockHashTest {

    private final SglangBlockHash tokens = SglangBlockHash.ofTokens();
    private final SglangBlockHash bigrams = SglangBlockHash.ofBigrams();

    @Test
    void givenPagesOfSixteen_whenChaining_thenKeysAndEventsAreThoseOfSglang() {
        List<byte[]> chain = tokens.chain(IntStream.rangeClosed(1, 48).toArray(), 16, null);
        assertThat(chain)
                .extracting(SglangBlockHash::eventHash)
                .containsExactly(8635429971592222890L, 1256577331724852459L, 5689809685380680247L);
        assertThat(SglangBlockHash.key(chain.getFirst()))
                .isEqualTo("77d735ce838418aa151bd96b5b1e78ee63860892e0a95c00fe34178442be9b07");
    }

    @Test
    void givenADigestWithItsTopBitSet_whenMakingAnEvent_thenItIsNegative() {
        assertThat(SglangBlockHash.eventHash(tokens.hash(null, new int[] {1, 2, 3, 4})))
                .isEqualTo(-3488128144981237669L);
        assertThat(SglangBlockHash.eventHash(tokens.hash(null, new int[] {0}))).isEqualTo(-2360060374177730597L);
    }

    @Test
    void givenAPageOfSixtyFour_whenHashing_thenKeyIsThatOfSglang() {
        byte[] digest = tokens.hash(null, IntStream.range(0, 64).toArray());
        assertThat(SglangBlockHash.key(digest))
                .isEqualTo("fea7b32778ecbdd7adee1941e98c89cf96bbc762f5f1beb0be24e36a456fbbc5");
    }

    @Test
    void givenASalt_whenSeeding_thenTheFirstPageContinuesFromIt() {
        byte[] seed = SglangBlockHash.saltSeed("tenant-a");
        assertThat(HexFormat.of().formatHex(seed))
                .isEqualTo("f5d0f785efe6042a4e4b0297a4d712917e1763c850835e93df58b373fd47fd2c");
        assertThat(tokens.chain(new int[] {1, 2}, 2, seed)).containsExactly(tokens.hash(seed, new int[] {1, 2}));
    }

    @Test
    void givenBigrams_whenHashingAPage_thenBothMembersOfEachAreHashed() {
        byte[] input = HexFormat.of().parseHex("01000000" + "02000000" + "02000000" + "03000000");
        assertThat(bigrams.hash(null, new int[] {1, 2, 3}))
                .isEqualTo(Sha256.newDigest().digest(input));
    }

    @Test
    void givenBigrams_whenChaining_thenAPageTakesOneTokenOfTheNext() {
        int[] sequence = {1, 2, 3, 4, 5};
        byte[] first = bigrams.hash(null, new int[] {1, 2, 3});
        byte[] second = bigrams.hash(first, new int[] {3, 4, 5});
        assertThat(bigrams.chain(sequence, 2, null)).containsExactly(first, second);
        assertThat(bigrams.chain(new int[] {1, 2, 3, 4}, 2, null)).containsExactly(first);
        assertThat(bigrams.chain(new int[0], 2, null)).isEmpty();
    }

    @Test
    void givenAPageOfNoTokens_whenChaining_thenTheMessageNamesIt() {
        assertThatThrownBy(() -> tokens.chain(new int[] {1}, -1, null))
                .hasMessage("tokens of a page = -1 is out of range; allowed: 1 and more");
    }
}
