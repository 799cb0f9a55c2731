package io.kvcache.core.tree;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.policy.RecordView;
import io.kvcache.core.tree.IndexHeader.IndexReader;
import io.kvcache.core.tree.RecordPool.NewRecordFields;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/// The index of one process as another sees it: here both see the same memory, the reader read-only.
final class IndexReaderTest {

    private static final int RECORDS = 16;
    private static final int BYTES = 4096;
    private static final int PAGE = 5;

    private final IndexHeader header = new IndexHeader(42, RECORDS, 1 << 20, false, new UUID(1, 2));
    private final MemorySegment file = Arena.ofAuto().allocate(IndexHeader.BYTES + RecordLayout.spanBytes(RECORDS), 64);
    private final RecordPool pool = new RecordPool(file.asSlice(IndexHeader.BYTES), RECORDS);
    private final BlockTree tree = new BlockTree(pool);
    private final IndexReader reader;

    IndexReaderTest() {
        header.publish(file);
        reader = new IndexReader(
                IndexHeader.read(file), file.asSlice(0, header.readerBytes()).asReadOnly());
    }

    private int sealed(long lo) {
        int record = tree.insert(new NewRecordFields(1, lo, RecordView.NONE, 3, 0, BYTES, 0, PAGE));
        pool.checksum(record, 77);
        pool.state(record, ControlWord.SEALED, 0);
        return record;
    }

    private void free(int record) {
        tree.removeFromIndex(record);
        tree.removeResident(record);
        tree.remove(record);
    }

    @Test
    void givenASealedBlock_whenItIsLookedUp_thenItsPageDepthAndChecksumAreTold() {
        sealed(9);
        long handle = reader.find(1, 9);
        assertThat(RecordHandle.isFound(handle)).isTrue();
        assertThat(reader.page(handle, BYTES)).isEqualTo(PAGE);
        assertThat(reader.depth(handle)).isEqualTo(3);
        assertThat(reader.checksum(handle)).isEqualTo(77);
        assertThat(reader.isUnchanged(handle)).isTrue();
        assertThat(reader.find(1, 10)).isEqualTo(RecordHandle.MISS);
    }

    @Test
    void givenABlockThatIsBeingWritten_whenItIsLookedUp_thenItIsAMiss() {
        tree.insert(new NewRecordFields(1, 9, RecordView.NONE, 0, 0, BYTES, 0, PAGE));
        assertThat(reader.find(1, 9)).isEqualTo(RecordHandle.MISS);
    }

    @Test
    void givenABlockThatWasFound_whenItIsFreed_thenTheRecordHoldsItNoMore() {
        int record = sealed(9);
        long handle = reader.find(1, 9);
        free(record);
        assertThat(reader.isUnchanged(handle)).isFalse();
        assertThat(reader.page(handle, BYTES)).isEqualTo(RecordView.NONE);
    }

    @Test
    void givenAnotherBlockInTheRecord_whenTheOldHandleIsAsked_thenTheRecordHoldsItNoMore() {
        int record = sealed(9);
        long handle = reader.find(1, 9);
        free(record);
        assertThat(sealed(11)).as("the same record").isEqualTo(record);
        assertThat(reader.isUnchanged(handle)).isFalse();
        assertThat(reader.page(handle, BYTES)).isEqualTo(RecordView.NONE);
        assertThat(reader.page(reader.find(1, 11), BYTES)).isEqualTo(PAGE);
    }

    @Test
    void givenABlockOfAnotherSize_whenItsPageIsAsked_thenThereIsNone() {
        sealed(9);
        assertThat(reader.page(reader.find(1, 9), BYTES + 1)).isEqualTo(RecordView.NONE);
    }

    @Test
    void givenAHandleOfNoRecord_whenItIsAsked_thenItIsRefused() {
        assertThatThrownBy(() -> reader.isUnchanged(RECORDS)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThat(reader.page(RECORDS, BYTES)).isEqualTo(RecordView.NONE);
        assertThat(reader.page(RecordHandle.MISS, BYTES)).isEqualTo(RecordView.NONE);
    }

    @Test
    void givenAStoreThatCloses_whenAsked_thenItServesNoMore() {
        assertThat(reader.isServing()).isTrue();
        IndexHeader.close(file);
        assertThat(reader.isServing()).isFalse();
    }

    @Test
    void givenBytesThatAreNoHeader_whenRead_thenTheyAreRefusedByName() {
        long[] offsets = {0, 8, 12, 24, 28, 32, 40, 52, 56};
        for (long offset : offsets) {
            byte kept = file.get(ValueLayout.JAVA_BYTE, offset);
            file.set(ValueLayout.JAVA_INT, offset, file.get(ValueLayout.JAVA_INT, offset) ^ 0x8000_0001);
            assertThatIllegalArgumentException()
                    .as("offset %d", offset)
                    .isThrownBy(() -> IndexHeader.read(file))
                    .withMessageContaining("of a shared index is")
                    .withMessageContaining("allowed: ");
            file.set(ValueLayout.JAVA_INT, offset, file.get(ValueLayout.JAVA_INT, offset) ^ 0x8000_0001);
            assertThat(file.get(ValueLayout.JAVA_BYTE, offset)).isEqualTo(kept);
        }
        assertThat(IndexHeader.read(file)).isEqualTo(header);
    }

    @Test
    void givenAHeader_whenPublished_thenTheseBytes() {
        byte[] magic = file.asSlice(0, 8).toArray(ValueLayout.JAVA_BYTE);
        assertThat(magic).asString(StandardCharsets.US_ASCII).isEqualTo("KVCINDEX");
        assertThat(file.get(RecordLayout.INT32, 8)).isEqualTo(1);
        assertThat(file.get(RecordLayout.INT32, 12)).isEqualTo(1);
        assertThat(file.get(RecordLayout.INT64, 16)).isEqualTo(42);
        assertThat(file.get(RecordLayout.INT32, 24)).isEqualTo(RECORDS);
        assertThat(file.get(RecordLayout.INT32, 28)).isEqualTo(28);
        assertThat(file.get(RecordLayout.INT64, 32)).isEqualTo(4096);
        assertThat(file.get(RecordLayout.INT64, 40)).isEqualTo(4096 + 128);
        assertThat(file.get(RecordLayout.INT64, 48)).isEqualTo(1 << 20);
        assertThat(file.get(RecordLayout.INT32, 56)).isEqualTo(4096);
    }

    @Test
    void givenBytesThatAreNoIndex_whenLookedUp_thenItEndsWithoutAFailure() {
        int unsure = 0;
        for (int seed = 0; seed < 2000; seed++) {
            SplittableRandom random = new SplittableRandom(seed);
            for (long at = IndexHeader.BYTES; at < header.readerBytes(); at += Integer.BYTES) {
                int small = random.nextInt(RECORDS + 1) - 1;
                file.set(RecordLayout.INT32, at, random.nextInt(4) == 0 ? random.nextInt() : small);
            }
            for (int key = 0; key < 20; key++) {
                long handle = reader.find(random.nextInt(3), random.nextLong());
                long known = reader.findKnown(random.nextInt(3), random.nextLong());
                unsure += handle == RecordHandle.UNSURE || known == RecordHandle.UNSURE ? 1 : 0;
                assertThat(reader.page(handle, BYTES)).isGreaterThanOrEqualTo(RecordView.NONE);
            }
        }
        assertThat(unsure).as("some are noticed").isPositive();
    }
}
