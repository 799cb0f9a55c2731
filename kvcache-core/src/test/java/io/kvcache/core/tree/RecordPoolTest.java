package io.kvcache.core.tree;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

final class RecordPoolTest {

    private static RecordPool pool(int capacity) {
        return new RecordPool(Arena.ofAuto().allocate(RecordLayout.spanBytes(capacity), 64), capacity);
    }

    @Test
    void givenAllTaken_whenOneMore_thenNone() {
        RecordPool pool = pool(3);
        assertThat(pool.allocate()).isZero();
        assertThat(pool.allocate()).isEqualTo(1);
        assertThat(pool.allocate()).isEqualTo(2);
        assertThat(pool.allocate()).isEqualTo(RecordPool.NONE);
        assertThat(pool.live()).isEqualTo(3);
        assertThat(pool.highWaterMark()).isEqualTo(3);
    }

    @Test
    void givenARecord_whenGivenBack_thenItComesAgainWithTheNextGeneration() {
        RecordPool pool = pool(2);
        int record = pool.allocate();
        pool.state(record, ControlWord.SEALED, 5);
        pool.free(record);
        assertThat(ControlWord.state(pool.control(record))).isEqualTo(ControlWord.FREE);
        assertThat(ControlWord.pins(pool.control(record))).isZero();
        assertThat(ControlWord.generation(pool.control(record))).isEqualTo(1);
        assertThat(pool.live()).isZero();
        assertThat(pool.allocate()).isEqualTo(record);
        assertThat(pool.highWaterMark()).isEqualTo(1);
    }

    @Test
    void givenTheLastGeneration_whenGivenBack_thenItStartsOver() {
        RecordPool pool = pool(1);
        int record = pool.allocate();
        pool.control(record, ControlWord.pack(-1, ControlWord.SEALED, ControlWord.MAX_PINS));
        assertThat(ControlWord.generation(pool.control(record))).isEqualTo(-1);
        assertThat(ControlWord.pins(pool.control(record))).isEqualTo(ControlWord.MAX_PINS);
        assertThat(RecordHandle.isFound(RecordHandle.of(-1, record))).isTrue();
        pool.free(record);
        assertThat(pool.control(record)).isZero();
    }

    @Test
    void givenFieldsOfAllRecords_whenRead_thenEachIsWhatWasWritten() {
        long seed = 7;
        RecordPool pool = pool(50);
        for (int record = 0; record < 50; record++) {
            pool.allocate();
            write(pool, record, new SplittableRandom(seed + record));
        }
        for (int record = 0; record < 50; record++) {
            check(pool, record, new SplittableRandom(seed + record));
        }
    }

    private static void write(RecordPool pool, int record, SplittableRandom random) {
        pool.key(record, random.nextLong(), random.nextLong());
        pool.engineHash(record, random.nextLong());
        pool.hostPage(record, random.nextInt());
        pool.bytes(record, random.nextInt());
        pool.next(record, random.nextInt());
        pool.parent(record, random.nextInt());
        pool.depth(record, random.nextInt());
        pool.flags(record, random.nextInt());
        pool.checksum(record, random.nextInt());
        pool.firstChild(record, random.nextInt());
        pool.nextSibling(record, random.nextInt());
        pool.previousSibling(record, random.nextInt());
        pool.residentChildren(record, random.nextInt());
        pool.control(record, random.nextLong());
    }

    private static void check(RecordPool pool, int record, SplittableRandom random) {
        assertThat(pool.keyHi(record)).isEqualTo(random.nextLong());
        assertThat(pool.keyLo(record)).isEqualTo(random.nextLong()).isEqualTo(pool.fingerprint(record));
        assertThat(pool.engineHash(record)).isEqualTo(random.nextLong());
        assertThat(pool.hostPage(record)).isEqualTo(random.nextInt());
        assertThat(pool.bytes(record)).isEqualTo(random.nextInt());
        assertThat(pool.next(record)).isEqualTo(random.nextInt());
        assertThat(pool.parent(record)).isEqualTo(random.nextInt());
        assertThat(pool.depth(record)).isEqualTo(random.nextInt());
        assertThat(pool.flags(record)).isEqualTo(random.nextInt());
        assertThat(pool.checksum(record)).isEqualTo(random.nextInt());
        assertThat(pool.firstChild(record)).isEqualTo(random.nextInt());
        assertThat(pool.nextSibling(record)).isEqualTo(random.nextInt());
        assertThat(pool.previousSibling(record)).isEqualTo(random.nextInt());
        assertThat(pool.residentChildren(record)).isEqualTo(random.nextInt());
        assertThat(pool.control(record)).isEqualTo(random.nextLong());
    }

    @Test
    void givenAnyKey_whenItsBucketIsAsked_thenItLiesInTheTable() {
        RecordPool pool = pool(7);
        assertThat(RecordLayout.buckets(7)).isEqualTo(13);
        assertThat(pool.bucketOf(0)).isZero();
        assertThat(pool.bucketOf(-1)).isEqualTo(12);
        assertThat(pool.bucketOf(Long.MIN_VALUE)).isEqualTo(6);
        assertThat(pool.bucketHead(5)).isEqualTo(RecordPool.NONE);
    }

    @Test
    void givenWrongSizes_whenOpened_thenRefusedWithValueAndRange() {
        MemorySegment small = Arena.ofAuto().allocate(RecordLayout.spanBytes(10) - 1);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new RecordPool(small, 10))
                .withMessageContaining("" + small.byteSize())
                .withMessageContaining("" + RecordLayout.spanBytes(10));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new RecordPool(small, 0))
                .withMessageContaining("records is 0")
                .withMessageContaining("1 to");
    }

    @Test
    void givenTheBudget_whenARecordIsCounted_thenItKeepsIt() {
        assertThat(RecordLayout.HOT_BYTES + RecordLayout.COLD_BYTES + RecordLayout.INDEX_BYTES)
                .isEqualTo(103);
        assertThat(RecordLayout.hotBase(3) % RecordLayout.HOT_BYTES).isZero();
    }
}
