package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.cluster.DropRecord.Kind;
import io.kvcache.cluster.DropRecord.NamespaceDigest;
import io.kvcache.core.identity.BlockKey;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// The set of drops: what counts, what is forgotten, and that servers agree.
final class DropLogTest {

    private static final NamespaceDigest ONE = new NamespaceDigest(1, 2, 3, 4);
    private static final NamespaceDigest OTHER = new NamespaceDigest(5, 6, 7, 8);

    private static DropRecord namespace(long millis, long id) {
        return DropRecord.ofNamespace(ONE, millis, id);
    }

    private static DropRecord chain(long key, long millis, long id) {
        return DropRecord.ofChain(ONE, new BlockKey(key, key), millis, id);
    }

    private static DropLog log(DropRecord... drops) {
        DropLog log = new DropLog();
        List.of(drops).forEach(log::add);
        return log;
    }

    @Test
    void givenADropThatIsKnown_whenHeardAgain_thenItIsNotAppliedAgain() {
        DropLog log = log(namespace(100, 1), chain(7, 101, 2));

        assertThat(log.add(namespace(100, 1))).isFalse();
        assertThat(log.add(namespace(130, 1))).as("another server's clock").isFalse();
        assertThat(log.add(chain(7, 101, 2))).isFalse();
        assertThat(log.add(chain(7, 140, 2))).isFalse();
        assertThat(log.size()).isEqualTo(2);
    }

    @Test
    void givenDropsOfTheSameThing_whenAnotherOneIsHeard_thenItIsApplied() {
        DropLog log = log(namespace(100, 1), chain(7, 101, 2));

        assertThat(log.add(chain(7, 102, 3))).isTrue();
        assertThat(log.add(namespace(103, 4))).isTrue();
        assertThat(log.records()).containsExactly(namespace(103, 4));
        assertThat(log.add(namespace(100, 1))).as("an earlier one").isFalse();
        assertThat(log.add(chain(7, 103, 9))).as("an earlier one").isFalse();
        assertThat(log.add(DropRecord.ofNamespace(OTHER, 5, 1))).isTrue();
    }

    @Test
    void givenTheSameDropWithTwoTimes_whenMerged_thenTheEarlierOneStaysAndHidesNoChain() {
        DropLog log = log(namespace(105, 1), chain(7, 106, 2));
        DropLog other = log(namespace(100, 1), chain(8, 103, 3));

        other.records().forEach(log::add);
        log.records().forEach(other::add);

        assertThat(log.records()).containsExactly(namespace(100, 1), chain(8, 103, 3), chain(7, 106, 2));
        assertThat(other.digest()).isEqualTo(log.digest());
        assertThat(other.find(ONE, new BlockKey(7, 7), 2)).isNotNull();
    }

    @Test
    void givenTheSameDropsInAnyOrder_whenAdded_thenTheDigestsAreEqual() {
        Random random = new Random(5);
        List<DropRecord> drops = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            drops.add(i % 10 == 0 ? namespace(random.nextInt(1000), i) : chain(i % 20, random.nextInt(1000), i));
        }
        DropLog first = new DropLog();
        drops.forEach(first::add);
        for (int run = 0; run < 50; run++) {
            Collections.shuffle(drops, random);
            DropLog log = new DropLog();
            drops.forEach(log::add);

            assertThat(log.digest()).isEqualTo(first.digest()).isNotZero();
            assertThat(log.records()).isEqualTo(first.records());
        }
        assertThat(new DropLog().digest()).isZero();
    }

    @Test
    void givenDropsOfChainsThatAreOld_whenCompacted_thenServersThatKnowThemLoseNothing() {
        long now = DropLog.MAX_AGE.toMillis() + 1000;
        DropLog log = log(chain(7, 900, 1), chain(8, 950, 2), chain(9, 2000, 3));
        DropLog same = log(chain(7, 900, 1), chain(8, 950, 2), chain(9, 2000, 3));
        DropLog lacksOne = log(chain(8, 950, 2));

        List<DropRecord> floors = log.compact(now);

        assertThat(floors).singleElement().satisfies(floor -> {
            assertThat(floor.kind()).isEqualTo(Kind.FLOOR);
            assertThat(same.add(floor)).isFalse();
            assertThat(lacksOne.add(floor)).as("has to drop all").isTrue();
            assertThat(new DropLog().add(floor)).as("has to drop all").isTrue();
        });
        assertThat(log.size()).isEqualTo(2);
        assertThat(same.digest()).isEqualTo(log.digest());
        assertThat(same.add(chain(7, 900, 1))).isFalse();
        assertThat(log.compact(now)).isEmpty();
    }

    @Test
    void givenTooManyDropsOfChains_whenCompacted_thenTheOldestOfTheLargestNamespaceGo() {
        DropLog log = new DropLog();
        DropLog other = new DropLog();
        log.add(DropRecord.ofChain(OTHER, new BlockKey(1, 1), 1, 1));
        other.add(DropRecord.ofChain(OTHER, new BlockKey(1, 1), 1, 1));
        for (int i = 0; i < DropLog.MAX_CHAINS; i++) {
            log.add(chain(i, 1000 + i, i));
            other.add(chain(i, 1000 + i, i));
        }
        assertThat(log.isFull()).isTrue();

        List<DropRecord> floors = log.compact(2000);

        assertThat(log.isFull()).isFalse();
        assertThat(log.size()).isBetween(DropLog.MAX_CHAINS / 4, DropLog.MAX_CHAINS * 3 / 4);
        assertThat(log.records()).contains(chain(DropLog.MAX_CHAINS - 1, 999 + DropLog.MAX_CHAINS, 65_535));
        assertThat(log.find(OTHER, new BlockKey(1, 1), 1)).isNotNull();
        assertThat(floors).allMatch(floor -> !other.add(floor));
        assertThat(other.digest()).isEqualTo(log.digest());
    }
}
