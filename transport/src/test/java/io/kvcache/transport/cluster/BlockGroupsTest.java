package io.kvcache.transport.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.nio.ByteBuffer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class BlockGroupsTest {

    /// Blocks of a prompt's groups, one after another.
    private static int groupCount(int blockTokens, int promptTokens) {
        BlockGroups groups = BlockGroups.of(blockTokens);
        int length = promptTokens / blockTokens;
        int count = 0;
        for (int at = 0; at < length; at = groups.end(at, length)) {
            count++;
        }
        return count;
    }

    @ParameterizedTest
    @ValueSource(ints = {16, 32, 64, 128})
    void givenSmallBlocks_whenCut_thenGroupsHaveTheSameTokens(int blockTokens) {
        assertThat(groupCount(blockTokens, 12 << 10)).isEqualTo(5);
        assertThat(groupCount(blockTokens, 128 << 10)).isEqualTo(19);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3, 16, 48, 100, 127, 129, 200, 256, 512, 1000, 1024, 5000, 8192, 8193, 65_536})
    void givenAnyBlockSize_whenCut_thenStartAndEndAgreeAndGroupsGrowAtMostFourfold(int blockTokens) {
        BlockGroups groups = BlockGroups.of(blockTokens);
        int length = 20_000;
        for (int at = 0; at < length; ) {
            int end = groups.end(at, length);
            assertThat(end).isGreaterThan(at);
            assertThat(end - at).as("blocks from %d on", at).isLessThanOrEqualTo(Math.max(8192 / blockTokens, 1));
            assertThat(at == 0 || end <= 4 * at).as("group from %d on", at).isTrue();
            for (int block = at; block < end; block++) {
                assertThat(groups.start(block)).isEqualTo(at);
                assertThat(groups.end(block, length)).isEqualTo(end);
            }
            at = end;
        }
    }

    @Test
    void givenTheLongestChain_whenItsLastGroupIsCut_thenItEndsWithTheChain() {
        assertThat(BlockGroups.of(1).end(Integer.MAX_VALUE - 1, Integer.MAX_VALUE))
                .isEqualTo(Integer.MAX_VALUE);
    }

    @Test
    void givenNumbersOutOfRange_whenUsed_thenTheRangeIsNamed() {
        assertThatThrownBy(() -> BlockGroups.of(0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("blockTokens = 0 is out of range; allowed: 1 to 65536");
        assertThatThrownBy(() -> BlockGroups.of(16).start(-1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("block = -1 is out of range; allowed: 0 and up");
    }

    @Test
    void givenAChain_whenItsGroupsAreTaken_thenEachHasTheKeyOfItsFirstBlock() {
        Namespace space = Namespace.of("groups", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));
        BlockChain chain = BlockChain.of(space, IntStream.range(0, 16 * 40).toArray());
        BlockGroup group = BlockGroup.of(chain, 39);
        assertThat(group.first()).isEqualTo(32);
        byte[] mask = group.chain().namespace().digest();
        assertThat(group.key())
                .isEqualTo(new BlockKey(
                        chain.keyHi(32) ^ ByteBuffer.wrap(mask).getLong(),
                        chain.keyLo(32) ^ ByteBuffer.wrap(mask).getLong(Long.BYTES)));
        assertThat(group.key()).isEqualTo(group.chain().key(0));
        assertThat(group.chain().length()).as("cut at the end of the chain").isEqualTo(8);
        assertThat(group.chain().namespace().layout()).isEqualTo("fourfold groups");
        assertThat(BlockGroup.namespace(group.chain().namespace()).layout())
                .isEqualTo("fourfold groups, fourfold groups");
        assertThat(BlockGroup.end(chain, 10)).isEqualTo(32);
    }
}
