package io.kvcache.core.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.engine.VllmBlockHash.ExtraEncoding;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// The expected values were recorded from vLLM with cbor2, or from an independent encoder that agrees with those.
class VllmBlockHashTest {

    private static final int[] ONE_TO_EIGHT = IntStream.rangeClosed(1, 8).toArray();
    private static final int[] ZERO_TO_31 = IntStream.range(0, 32).toArray();
    private static final int[] ZERO_TO_15 = IntStream.range(0, 16).toArray();

    private final VllmBlockHash tagged = VllmBlockHash.withDefaultSeed(ExtraEncoding.TAGGED);
    private final VllmBlockHash untagged = VllmBlockHash.withDefaultSeed(ExtraEncoding.UNTAGGED);

    @Test
    void givenNoHashSeed_whenHashingNothing_thenNoneHashIsThatOfTheFixedText() {
        assertHex(tagged.noneHash(), "9bd96a485ad84efdafb72ee48a1d7a69bcead0f8f0433173941b276b9581eef0");
    }

    @Test
    void givenHashSeedZero_whenHashingNothing_thenNoneHashIsThatOfItsText() {
        VllmBlockHash seeded = VllmBlockHash.withSeed("0", ExtraEncoding.TAGGED);
        assertHex(seeded.noneHash(), "4e1195df020de59e0d65a33a4279f1183e7ae4e5d980e309f8b55adff2e61c3e");
    }

    @Test
    void givenBlocksOfFour_whenChaining_thenDigestsAndEventsAreThoseOfVllm() {
        List<byte[]> chain = untagged.chain(ONE_TO_EIGHT, 4, VllmExtraKeys.NONE);
        assertThat(chain).hasSize(2);
        assertHex(chain.get(0), "58d0879dff3800f65f8c5fd449d73048c0f7699dd238a03b84b146b151d55111");
        assertThat(Long.toUnsignedString(VllmBlockHash.eventHash(chain.get(0)))).isEqualTo("9561501211280363793");
        assertHex(chain.get(1), "e1bc29393a2da9fd798f35ff04d215f846aee6df4b803ce3d43b57df56b58fb1");
    }

    @Test
    void givenBlocksOfSixteen_whenChaining_thenDigestsAndEventsAreThoseOfVllm() {
        List<byte[]> chain = tagged.chain(ZERO_TO_31, 16, VllmExtraKeys.NONE);
        assertHex(chain.get(0), "dc918a88b139e5afe60b88eda27508d4aee16c10fdc354791efea06206ac0749");
        assertThat(Long.toUnsignedString(VllmBlockHash.eventHash(chain.get(0)))).isEqualTo("2233398808101521225");
        assertHex(chain.get(1), "c300ec275d7bf08af8fc63e76cdc0086911bbc7091e03c5cf892553bef84ef0c");
        assertThat(Long.toUnsignedString(VllmBlockHash.eventHash(chain.get(1)))).isEqualTo("17911472383915781900");
    }

    @Test
    void givenHashSeedZero_whenHashingABlock_thenDigestIsThatOfVllm() {
        byte[] digest = VllmBlockHash.withSeed("0", ExtraEncoding.UNTAGGED).hash(null, ZERO_TO_15, VllmExtraKeys.NONE);
        assertHex(digest, "d830de3d42c00f25a2949b5d12d98642664a44872c1614c5b0147556276afc9c");
    }

    @Test
    void givenEveryKindOfExtra_whenHashingTagged_thenDigestAndEventAreThoseOfVllm() {
        byte[] embeds = new byte[32];
        for (int i = 0; i < embeds.length; i++) {
            embeds[i] = (byte) i;
        }
        VllmExtraKeys extras = VllmExtraKeys.NONE
                .withLora("adapter", "/adapters/adapter")
                .withMultimodalItem("mm-abc", 0, 4)
                .withCacheSalt("salt-1")
                .withPromptEmbeds(List.of(embeds));
        byte[] digest = tagged.hash(null, new int[] {1, 2, 3, 4}, extras);
        assertHex(digest, "280bce663478b44320e68be593605214c94f7648ac34b4b94274fdcd0f2a8a04");
        assertThat(VllmBlockHash.eventHash(digest)).isEqualTo(4788731360966248964L);
        assertThat(tagged.chain(new int[] {1, 2, 3, 4}, 4, extras)).containsExactly(digest);
    }

    @Test
    void givenASalt_whenHashingUntaggedAndTagged_thenDigestsAreThoseOfVllm() {
        VllmExtraKeys salted = VllmExtraKeys.NONE.withCacheSalt("tenant-a");
        assertHex(
                untagged.hash(null, ZERO_TO_15, salted),
                "6cb0a72bb1d5fcd9e8edc0a7c0d918f6545a8d98f4370ef894cac0191c41787a");
        assertHex(
                tagged.hash(null, ZERO_TO_15, salted),
                "4e31e1ced73eb044a95997f0109d0ddab3d9145878214f1a0ee37c048b397859");
    }

    @Test
    void givenASaltedRequest_whenChaining_thenTheSaltCountsInBlockZeroOnly() {
        List<byte[]> chain = tagged.chain(ZERO_TO_31, 16, VllmExtraKeys.NONE.withCacheSalt("tenant-a"));
        assertHex(chain.get(0), "4e31e1ced73eb044a95997f0109d0ddab3d9145878214f1a0ee37c048b397859");
        int[] second = IntStream.range(16, 32).toArray();
        assertThat(chain.get(1)).isEqualTo(tagged.hash(chain.get(0), second, VllmExtraKeys.NONE));
    }

    @Test
    void givenAnItemThatBeginsInOneBlockAndEndsInTheNext_whenChaining_thenBothHashItsRelativeOffset() {
        VllmExtraKeys extras = VllmExtraKeys.NONE.withMultimodalItem("image", 3, 5);
        List<byte[]> chain = tagged.chain(IntStream.range(0, 12).toArray(), 4, extras);

        byte[] first = tagged.hash(null, new int[] {0, 1, 2, 3}, VllmExtraKeys.NONE.withMultimodalItem("image", 3, 5));
        byte[] second =
                tagged.hash(first, new int[] {4, 5, 6, 7}, VllmExtraKeys.NONE.withMultimodalItem("image", -1, 5));
        byte[] third = tagged.hash(second, new int[] {8, 9, 10, 11}, VllmExtraKeys.NONE);
        assertThat(chain).containsExactly(first, second, third);
    }

    @Test
    void givenAnAdapterNamedLikeASalt_whenHashing_thenOnlyTheTaggedEncodingTellsThemApart() {
        VllmExtraKeys adapter = VllmExtraKeys.NONE.withLora("tenant-a", "/a");
        VllmExtraKeys salt = VllmExtraKeys.NONE.withCacheSalt("tenant-a");
        assertThat(untagged.hash(null, ZERO_TO_15, adapter)).isEqualTo(untagged.hash(null, ZERO_TO_15, salt));
        assertThat(tagged.hash(null, ZERO_TO_15, adapter)).isNotEqualTo(tagged.hash(null, ZERO_TO_15, salt));
    }

    @Test
    void givenOneDigestOfEmbedsABlock_whenChaining_thenEachBlockHashesItsOwn() {
        byte[] zeros = new byte[32];
        byte[] ones = new byte[32];
        Arrays.fill(ones, (byte) 1);
        List<byte[]> chain = untagged.chain(ONE_TO_EIGHT, 4, VllmExtraKeys.NONE.withPromptEmbeds(List.of(zeros, ones)));
        byte[] first = untagged.hash(null, new int[] {1, 2, 3, 4}, VllmExtraKeys.NONE.withPromptEmbeds(List.of(zeros)));
        byte[] second =
                untagged.hash(first, new int[] {5, 6, 7, 8}, VllmExtraKeys.NONE.withPromptEmbeds(List.of(ones)));
        assertThat(chain).containsExactly(first, second);
    }

    @Test
    void givenADigest_whenMakingTheStorageKey_thenTheGroupFollowsInFourBytes() {
        byte[] key = VllmBlockHash.storageKey(tagged.noneHash(), 0x01020304);
        assertHex(key, HexFormat.of().formatHex(tagged.noneHash()) + "01020304");
    }

    @Test
    void givenAPartialBlock_whenChaining_thenItHasNoDigest() {
        assertThat(tagged.chain(ONE_TO_EIGHT, 5, VllmExtraKeys.NONE)).hasSize(1);
        assertThat(tagged.chain(ONE_TO_EIGHT, 9, VllmExtraKeys.NONE)).isEmpty();
    }

    @Test
    void givenBadInput_whenHashing_thenTheMessageNamesIt() {
        assertThatThrownBy(() -> tagged.chain(ONE_TO_EIGHT, 0, VllmExtraKeys.NONE))
                .hasMessage("tokens of a page = 0 is out of range; allowed: 1 and more");
        assertThatThrownBy(() -> VllmExtraKeys.NONE.withPromptEmbeds(List.of(new byte[31])))
                .hasMessage("digest of prompt embeddings takes 31 bytes; allowed: 32");
        assertThatThrownBy(() -> VllmExtraKeys.NONE.withMultimodalItem("image", 7, 0))
                .hasMessage("multimodal item image spans 0 tokens from 7; allowed: 1 token and more, up to position"
                        + " 2^31 - 1");
        assertThatThrownBy(() -> tagged.hash(null, ZERO_TO_15, VllmExtraKeys.NONE.withCacheSalt("\uD800")))
                .hasMessage("cache salt holds half a surrogate pair; allowed: well-formed Unicode");
    }

    private static void assertHex(byte[] digest, String hex) {
        assertThat(HexFormat.of().formatHex(digest)).isEqualTo(hex);
    }
}
