package io.kvcache.core.identity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.hash.Sha256;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class BlockKeyTest {

    private static final Namespace OBJECTS = Namespace.objects("objects", "acme");

    @Test
    void givenADigest_whenMakingAKey_thenItIsItsFirstSixteenBytesBigEndian() {
        byte[] digest = HexFormat.of().parseHex("0102030405060708f1f2f3f4f5f6f7f8" + "ff".repeat(16));
        BlockKey key = BlockKey.ofDigest(digest);
        assertThat(key).isEqualTo(new BlockKey(0x0102030405060708L, 0xf1f2f3f4f5f6f7f8L));
        assertThat(key).hasToString("0102030405060708f1f2f3f4f5f6f7f8");
        assertThat(BlockKey.ofDigest(Arrays.copyOf(digest, BlockKey.BYTES))).isEqualTo(key);
    }

    @Test
    void givenAnObjectKey_whenHashed_thenItIsTheDigestOfTagNamespaceAndKey() {
        byte[] name = "some/key".getBytes(StandardCharsets.UTF_8);
        MessageDigest sha = Sha256.newDigest();
        sha.update("kvcache object v1\0".getBytes(StandardCharsets.US_ASCII));
        sha.update(OBJECTS.digest());
        assertThat(BlockKey.ofObject(OBJECTS, name)).isEqualTo(BlockKey.ofDigest(sha.digest(name)));
    }

    @Test
    void givenOneObjectKeyInTwoNamespaces_whenHashed_thenKeysDiffer() {
        byte[] name = {1};
        assertThat(BlockKey.ofObject(OBJECTS, name))
                .isNotEqualTo(BlockKey.ofObject(Namespace.objects("objects", "other"), name));
    }

    @Test
    void givenKeysInTurn_whenHashed_thenNoneHasTheNameOfTheOneBefore() {
        Namespace other = Namespace.objects("objects", "other");
        byte[] reused = new byte[300];
        for (int round = 0; round < 2000; round++) {
            int length = 1 + round * 7 % reused.length;
            reused[round % reused.length]++;
            byte[] key = Arrays.copyOf(reused, length);
            Namespace space = round % 3 == 0 ? other : OBJECTS;
            BlockKey expected = named(space, key);
            assertThat(BlockKey.ofObject(space, key)).isEqualTo(expected);
            assertThat(BlockKey.ofObject(space, key.clone())).isEqualTo(expected);
            key[length - 1]++; // its owner changes it, and asks again with the same array
            assertThat(BlockKey.ofObject(space, key)).isEqualTo(named(space, key));
        }
    }

    @Test
    void givenKeysNamedAhead_whenAskedForInAnyOrder_thenEachHasItsOwnName() {
        Namespace other = Namespace.objects("objects", "other");
        SplittableRandom random = new SplittableRandom(1);
        for (int round = 0; round < 500; round++) {
            List<byte[]> keys = IntStream.range(0, 8)
                    .mapToObj(i -> new byte[] {(byte) random.nextInt(4), (byte) i})
                    .toList();
            BlockKey[] names = BlockKey.ofObjectsAhead(round % 5 == 0 ? other : OBJECTS, keys);
            for (int asked = 0; asked < 12; asked++) {
                byte[] key = asked < 8 && random.nextInt(4) > 0
                        ? keys.get(asked).clone()
                        : new byte[] {(byte) random.nextInt(4), (byte) random.nextInt(8)};
                assertThat(BlockKey.ofObject(OBJECTS, key)).isEqualTo(named(OBJECTS, key));
            }
            assertThat(names[3]).isEqualTo(named(round % 5 == 0 ? other : OBJECTS, keys.get(3)));
        }
    }

    private static BlockKey named(Namespace space, byte[] key) {
        MessageDigest sha = Sha256.newDigest();
        sha.update("kvcache object v1\0".getBytes(StandardCharsets.US_ASCII));
        sha.update(space.digest());
        return BlockKey.ofDigest(sha.digest(key));
    }

    @Test
    void givenTheLongestObjectKey_whenHashed_thenItIsAccepted() {
        assertThat(BlockKey.ofObject(OBJECTS, new byte[4096])).isNotEqualTo(BlockKey.ofObject(OBJECTS, new byte[4095]));
    }

    @Test
    void givenBytesOfAWrongLength_whenMakingAKey_thenTheMessageNamesThem() {
        assertThatThrownBy(() -> BlockKey.ofDigest(new byte[15]))
                .hasMessage("digest bytes = 15 is out of range; allowed: 16 to 64");
        assertThatThrownBy(() -> BlockKey.ofObject(OBJECTS, new byte[0]))
                .hasMessage("object key bytes = 0 is out of range; allowed: 1 to 4096");
        assertThatThrownBy(() -> BlockKey.ofObject(OBJECTS, new byte[4097]))
                .hasMessage("object key bytes = 4097 is out of range; allowed: 1 to 4096");
    }
}
