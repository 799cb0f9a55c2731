package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.Hint;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.identity.BlockChain;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Hints: they cost hits when they are wrong, never correctness. By a clock that the test moves, where there
/// is one, and under the store's own policy, which evicts what was used longest ago.
public abstract class HintContract extends KvCacheContract {

    private static final Duration MINUTE = Duration.ofMinutes(1);

    protected HintContract(CacheUnderTest.Factory factory) {
        super(factory, CacheSetup.SMALL.withManualTime());
    }

    /// Puts blocks of other chains.
    private void fillWith(int firstSeed, int blocks) {
        for (int i = 0; i < blocks; i++) {
            stored(chain(firstSeed + i, 1));
        }
    }

    private void advance(Duration time) {
        assumeThat(subject().advance(time)).as("time can be moved").isTrue();
    }

    @Test
    void givenAnOldChainIsExpected_whenRoomIsNeeded_thenTheOtherGoes() {
        BlockChain old = stored(chain(1, 32));
        BlockChain young = stored(chain(2, 32));
        assertThat(cache().hint(new Hint.Expect(old, Duration.ZERO))).isTrue();
        fillWith(100, 10);
        assertThat(verified(old)).isEqualTo(32);
        assertThat(match(young)).isEqualTo(22);
    }

    @Test
    void givenATailIsForgotten_whenRoomIsNeeded_thenItGoesFirst() {
        BlockChain old = stored(chain(1, 32));
        BlockChain young = stored(chain(2, 32));
        assertThat(cache().hint(new Hint.Forget(young, 10))).isTrue();
        assertThat(verified(young)).as("a hint removes nothing").isEqualTo(32);
        subject().settle(); // what is still held is not evicted
        assertThat(cache().hint(new Hint.Forget(young, 10))).isTrue();
        fillWith(100, 22);
        assertThat(verified(old)).isEqualTo(32);
        assertThat(verified(young)).isEqualTo(10);
    }

    @Test
    void givenAPin_whenRoomIsNeeded_thenTheChainStaysUntilItsTimeIsOver() {
        BlockChain pinned = stored(chain(1, 10));
        assertThat(cache().hint(new Hint.Pin(pinned, MINUTE))).isTrue();
        fillWith(100, 100);
        assertThat(match(pinned)).isEqualTo(10);
        advance(Duration.ofSeconds(59));
        fillWith(300, 100);
        assertThat(match(pinned)).isEqualTo(10);
        advance(Duration.ofSeconds(2));
        cache().stats();
        fillWith(500, 100);
        assertThat(match(pinned)).isZero();
    }

    @Test
    void givenAPin_whenPinnedAgain_thenItsTimeStartsAnew() {
        BlockChain pinned = stored(chain(1, 10));
        cache().hint(new Hint.Pin(pinned, MINUTE));
        advance(Duration.ofSeconds(40));
        assertThat(cache().hint(new Hint.Pin(pinned, MINUTE))).isTrue();
        advance(Duration.ofSeconds(40));
        cache().stats();
        fillWith(100, 100);
        assertThat(verified(pinned)).isEqualTo(10);
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAPin_whenEnded_thenTheChainMayGo() {
        BlockChain pinned = stored(chain(1, 10));
        cache().hint(new Hint.Pin(pinned, MINUTE));
        assertThat(cache().hint(new Hint.Pin(pinned, Duration.ZERO))).isTrue();
        fillWith(100, 100);
        assertThat(match(pinned)).isZero();
    }

    @Test
    @Tag(ESSENTIAL)
    void givenPinsOfAQuarter_whenMoreIsAsked_thenNotTaken() {
        BlockChain sixteen = stored(chain(1, 16));
        BlockChain one = stored(chain(2, 1));
        assertThat(cache().hint(new Hint.Pin(sixteen, MINUTE))).isTrue();
        assertThat(cache().hint(new Hint.Pin(one, MINUTE))).isFalse();
        assertThat(cache().hint(new Hint.Pin(sixteen, MINUTE)))
                .as("the same again")
                .isTrue();
        assertThat(cache().hint(new Hint.Pin(sixteen, Duration.ZERO))).isTrue();
        assertThat(cache().hint(new Hint.Pin(one, MINUTE))).isTrue();
        BlockChain seventeen = stored(chain(3, 17));
        assertThat(cache().hint(new Hint.Pin(one, Duration.ZERO))).isTrue();
        assertThat(cache().hint(new Hint.Pin(seventeen, MINUTE))).isFalse();
        fillWith(100, 100);
        assertThat(match(seventeen)).isZero();
    }

    @Test
    void givenAPinnedChain_whenDropped_thenGone() {
        BlockChain pinned = stored(chain(1, 10));
        cache().hint(new Hint.Pin(pinned, MINUTE));
        assertThat(cache().drop(pinned, 0)).isEqualTo(10);
        assertThat(match(pinned)).isZero();
        assertThat(cache().hint(new Hint.Pin(pinned, Duration.ZERO))).isTrue();
        subject().settle();
        assertThat(cache().stats().host().heldBytes()).isZero();
    }

    @Test
    void givenAPinnedChain_whenABlockOfItIsDropped_thenItsMemoryIsFreeAtOnce() {
        BlockChain pinned = stored(chain(1, 10));
        cache().hint(new Hint.Pin(pinned, MINUTE));
        assertThat(cache().drop(pinned, 4)).isEqualTo(6);
        subject().settle();
        long held = cache().stats().host().heldBytes();
        assertThat(cache().drop(pinned, 0)).isEqualTo(4);
        subject().settle();
        assertThat(cache().stats().host().heldBytes()).isZero();
        assertThat(held).as("of four blocks").isEqualTo(4 * blockBytes(MIB));
    }

    @Test
    void givenAPinForever_whenAnHourIsOver_thenTheChainMayGo() {
        BlockChain pinned = stored(chain(1, 10));
        assertThat(cache().hint(new Hint.Pin(pinned, Duration.ofNanos(Long.MAX_VALUE))))
                .isTrue();
        advance(Duration.ofMinutes(59));
        cache().stats();
        fillWith(100, 100);
        assertThat(match(pinned)).isEqualTo(10);
        advance(Duration.ofMinutes(2));
        cache().stats();
        fillWith(300, 100);
        assertThat(match(pinned)).isZero();
    }

    @Test
    void givenAPin_whenItsRenewalIsBeyondTheQuota_thenTheOldOneStays() {
        BlockChain whole = chain(1, 17);
        stored(whole.prefix(10));
        assertThat(cache().hint(new Hint.Pin(whole, MINUTE))).isTrue();
        for (int index = 10; index < 17; index++) {
            assertThat(put(whole, index)).isEqualTo(PutOutcome.RESERVED);
        }
        assertThat(cache().hint(new Hint.Pin(whole, MINUTE))).isFalse();
        fillWith(100, 100);
        assertThat(match(whole)).isEqualTo(10);
    }

    @Test
    void givenATimeToLive_whenItIsOver_thenTheTailGoesFirstAndNotBefore() {
        BlockChain old = stored(chain(1, 30));
        BlockChain young = stored(chain(2, 30));
        assertThat(cache().hint(new Hint.Expire(young, 10, MINUTE))).isTrue();
        advance(Duration.ofSeconds(59));
        fillWith(100, 10); // 4 fit beside them
        assertThat(match(old)).as("its time is not over").isEqualTo(24);
        assertThat(match(young)).isEqualTo(30);
        advance(Duration.ofSeconds(2));
        fillWith(200, 20);
        assertThat(match(old)).isEqualTo(24);
        assertThat(match(young)).isEqualTo(10);
    }

    @Test
    void givenATimeToLive_whenTheChainHasGrownMeanwhile_thenItStays() {
        BlockChain whole = chain(1, 20);
        stored(whole.prefix(10));
        assertThat(cache().hint(new Hint.Expire(whole.prefix(10), 0, MINUTE))).isTrue();
        for (int index = 10; index < 20; index++) {
            assertThat(put(whole, index)).isEqualTo(PutOutcome.RESERVED);
        }
        BlockChain other = stored(chain(2, 40));
        assertThat(verified(whole)).isEqualTo(20);
        subject().settle();
        advance(Duration.ofSeconds(61));
        fillWith(100, 10);
        assertThat(match(whole)).isEqualTo(20);
        assertThat(match(other)).isEqualTo(34);
    }

    @Test
    void givenATimeToLive_whenItIsGivenAnew_thenItStartsAnew() {
        BlockChain chain = stored(chain(1, 30));
        BlockChain other = stored(chain(2, 30));
        assertThat(cache().hint(new Hint.Expire(other, 0, MINUTE))).isTrue();
        advance(Duration.ofSeconds(40));
        assertThat(cache().hint(new Hint.Expire(other, 0, MINUTE))).isTrue();
        advance(Duration.ofSeconds(40));
        fillWith(100, 10);
        assertThat(match(chain)).isEqualTo(24);
        assertThat(match(other)).isEqualTo(30);
    }

    @Test
    void givenASession_whenItsNextTurnIsLabelled_thenWhatItLeftBehindGoesFirst() {
        BlockChain first = stored(chain(1, 20));
        assertThat(cache().hint(turn(first, 1))).isTrue();
        BlockChain other = stored(chain(2, 30));
        BlockChain next = fork(12, 16);
        for (int index = 12; index < 16; index++) {
            assertThat(put(next, index)).isEqualTo(PutOutcome.RESERVED);
        }
        assertThat(cache().hint(turn(next, 2))).isTrue();
        fillWith(100, 10 + 8);
        assertThat(match(first)).as("what both turns have").isEqualTo(12);
        assertThat(match(next)).isEqualTo(16);
        assertThat(match(other)).isEqualTo(30);
    }

    @Test
    void givenASession_whenOthersHaveGoneOnFromWhatItLeftBehind_thenThatStays() {
        BlockChain first = stored(chain(1, 20));
        cache().hint(turn(first, 1));
        BlockChain longer = chain(1, 22);
        for (int index = 20; index < 22; index++) {
            assertThat(put(longer, index)).isEqualTo(PutOutcome.RESERVED);
        }
        BlockChain other = stored(chain(2, 38));
        assertThat(cache().hint(turn(fork(12, 16), 2))).isTrue();
        assertThat(verified(longer)).isEqualTo(22);
        subject().settle();
        fillWith(100, 12);
        assertThat(match(longer)).isEqualTo(22);
        assertThat(match(other)).isEqualTo(30);
    }

    private static Hint turn(BlockChain chain, int turn) {
        return new Hint.Label(chain, 0, new RequestLabel(RequestKind.CHAT, 7, turn, false));
    }

    /// A chain that begins as the first one does and goes on in its own way.
    private static BlockChain fork(int kept, int blocks) {
        return chain(1, kept)
                .extend(IntStream.range(0, (blocks - kept) * BLOCK_TOKENS)
                        .map(i -> 9_000_000 + kept * 100_000 + i)
                        .toArray());
    }

    private static byte[] objectKey(int number) {
        return new byte[] {(byte) number};
    }

    private List<byte[]> storedObjects(int from, int to) {
        List<byte[]> keys = new ArrayList<>();
        for (int number = from; number < to; number++) {
            byte[] key = objectKey(number);
            putObject(key, content(OBJECTS, key), (1 << 20) - 100);
            keys.add(key);
        }
        return keys;
    }

    private long present(List<byte[]> keys) {
        return keys.stream().filter(key -> cache().containsObject(OBJECTS, key)).count();
    }

    @Test
    void givenOldObjectsAreExpected_whenRoomIsNeeded_thenOthersGo() {
        List<byte[]> old = storedObjects(0, 10);
        List<byte[]> young = storedObjects(10, 40);
        assertThat(cache().hintObjects(OBJECTS, old, new ObjectHint.Expect(Duration.ZERO)))
                .isEqualTo(10);
        fillWith(100, 30);
        assertThat(present(old)).isEqualTo(10);
        assertThat(present(young)).isLessThan(30);
    }

    @Test
    void givenYoungObjectsAreForgotten_whenRoomIsNeeded_thenTheyGoFirst() {
        List<byte[]> old = storedObjects(0, 20);
        List<byte[]> young = storedObjects(20, 40);
        assertThat(cache().hintObjects(OBJECTS, young, new ObjectHint.Forget())).isEqualTo(20);
        assertThat(present(young)).as("a hint removes nothing").isEqualTo(20);
        fillWith(100, 30);
        assertThat(present(old)).isEqualTo(20);
        assertThat(present(young)).isLessThan(20);
    }

    @Test
    void givenPinnedObjects_whenRoomIsNeeded_thenTheyStayUntilTheirTimeIsOver() {
        List<byte[]> pinned = storedObjects(0, 8);
        assertThat(cache().hintObjects(OBJECTS, pinned, new ObjectHint.Pin(MINUTE)))
                .isEqualTo(8);
        fillWith(100, 100);
        assertThat(present(pinned)).isEqualTo(8);
        advance(Duration.ofSeconds(61));
        cache().stats();
        fillWith(300, 100);
        assertThat(present(pinned)).isZero();
    }

    @Test
    void givenUnknownObjects_whenHinted_thenTheyAreSkipped() {
        List<byte[]> unknown = List.of(objectKey(1), objectKey(2));
        assertThat(cache().hintObjects(OBJECTS, unknown, new ObjectHint.Pin(MINUTE)))
                .isZero();
        assertThat(cache().hintObjects(OBJECTS, unknown, new ObjectHint.Forget()))
                .isZero();
        assertThat(cache().hintObjects(OBJECTS, List.of(), new ObjectHint.Forget()))
                .isZero();
    }

    @Test
    void givenThePolicyThatIsTheDefault_whenBlocksAreWeighedOrOnlyClassed_thenTakenAndServed() {
        BlockChain chain = stored(chain(1, 3));
        assertThat(cache().hint(new Hint.Weigh(chain, 1, List.of(0.5f, 1f)))).isTrue();
        assertThat(cache().hint(new Hint.Label(chain, 0, RequestLabel.of(RequestKind.AGENT))))
                .isTrue();
        assertThat(verified(chain)).isEqualTo(3);
    }

    @Test
    void givenAChainThatIsNotHere_whenHinted_thenNothingHappens() {
        BlockChain chain = chain(1, 5);
        assertThat(cache().hint(new Hint.Pin(chain, MINUTE)))
                .as("nothing to pin")
                .isFalse();
        cache().hint(new Hint.Expect(chain, MINUTE));
        cache().hint(new Hint.Forget(chain, 2));
        cache().hint(new Hint.Forget(chain, 5));
        cache().hint(new Hint.Pin(chain.prefix(0), MINUTE));
        cache().hint(new Hint.Expire(chain, 5, MINUTE));
        cache().hint(new Hint.Expire(chain, 0, Duration.ZERO));
        cache().hint(new Hint.Weigh(chain, 5, List.of()));
        cache().hint(turn(chain, 1));
        cache().hint(turn(chain.prefix(0), 2));
        assertThat(match(chain)).isZero();
        assertThat(verified(stored(chain))).isEqualTo(5);
    }
}
