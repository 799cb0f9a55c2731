package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.core.tree.RecordPool.NewRecordFields;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

final class WriteAdmissionTest {

    private static final int RECORDS = 1000;
    private static final int BLOCK_TOKENS = 4096;
    private static final int BYTES = 4 * BLOCK_TOKENS;
    private static final Namespace SPACE =
            Namespace.of("m", BlockShape.mla(1, BYTES / BLOCK_TOKENS, BLOCK_TOKENS, Dtype.INT8));
    private static final Namespace THINGS = Namespace.objects("things", "t");
    private static final int FAR = 40;
    private static final long DISK_BYTES = 64L * BYTES;

    /// A block of mean cost has to be used in one of two cases.
    private static final double GAIN = 2;

    private final HostStore store =
            new HostStore(new HostStoreConfig(SlabPool.MIN_BYTES, RECORDS, PolicyKind.LRU, 64), ArenaMemory.source());
    private final RecordPool pool = store.pool;
    private final int space = store.register(SPACE).id();
    private final int things = store.register(THINGS).id();
    private final WriteAdmission writeAdmission =
            new WriteAdmission(pool, store.objectLinks, store.namespaceRegistry, store.policies.state());
    private long key;

    @BeforeEach
    void open() {
        writeAdmission.onDiskAdded(DISK_BYTES);
    }

    @AfterEach
    void close() {
        store.close();
    }

    private int insert(int identity, int depth) {
        return store.tree.insert(
                new NewRecordFields(++key, key, NONE, depth, identity, BYTES, 0, 0), ControlWord.SEALED, 0);
    }

    private int block(int depth) {
        return insert(RecordFlags.ofBlock(space), depth);
    }

    /// The blocks of a prompt, none of which was here.
    private int[] putPrompt(int blocks) {
        int[] prompt = new int[blocks];
        int parent = NONE;
        for (int i = 0; i < blocks; i++) {
            NewRecordFields next = new NewRecordFields(++key, key, parent, i, RecordFlags.ofBlock(space), BYTES, 0, 0);
            prompt[i] = store.tree.insert(next, ControlWord.SEALED, 0);
            writeAdmission.onPutStarted(prompt[i], blocks - i);
            writeAdmission.onPut(prompt[i]);
            parent = prompt[i];
        }
        return prompt;
    }

    private void use(int[] prompt) {
        for (int record : prompt) {
            writeAdmission.onUsed(record);
        }
    }

    private void putNearTheStart(int blocks) {
        for (int i = 0; i < blocks; i++) {
            assertThat(writeAdmission.onPut(block(0))).isFalse();
        }
    }

    @Test
    void givenTheSameOdds_whenABlockLiesFarIntoItsPrompt_thenItIsWorthAWriteAndAFirstOneIsNot() {
        writeAdmission.start(AdmissionKind.VALUE, GAIN);
        putNearTheStart(5);
        assertThat(writeAdmission.onPut(block(FAR))).isTrue();
    }

    @Test
    void givenAnEngineThatTakesAsLongEverywhere_whenABlockLiesFarIntoItsPrompt_thenItIsWorthNoMore() {
        writeAdmission.start(AdmissionKind.VALUE, GAIN);
        writeAdmission.recomputeCost().setPrefillCost(PrefillCost.ofTokenRate(10_000));
        putNearTheStart(5);
        assertThat(writeAdmission.onPut(block(FAR))).isFalse();
    }

    @Test
    void givenABlockThatIsNotWorthAWrite_whenItIsUsed_thenItIs() {
        writeAdmission.start(AdmissionKind.VALUE, GAIN);
        int block = block(0);
        assertThat(writeAdmission.onPut(block)).isFalse();
        assertThat(writeAdmission.onUsed(block)).isTrue();
    }

    @Test
    void givenABlockThatHasLeft_whenItIsPutAgain_thenThatIsAUse() {
        writeAdmission.start(AdmissionKind.SECOND_HIT, GAIN);
        int block = block(0);
        assertThat(writeAdmission.onPut(block)).isFalse();
        writeAdmission.onForgotten(block);
        assertThat(writeAdmission.onPut(block)).isTrue();
    }

    @Test
    void givenObjectsBehindOthersThatNobodyReads_whenMoreArePut_thenThoseBehindAreNotWorthAWrite() {
        writeAdmission.start(AdmissionKind.VALUE, AdmissionKind.DEFAULT_GAIN);
        for (int i = 0; i < RECORDS / 4; i++) {
            int head = insert(RecordFlags.ofObject(things), 0);
            int tail = insert(RecordFlags.ofObject(things), 0);
            assertThat(store.objectLinks.link(tail, head)).isTrue();
            writeAdmission.onPut(head);
            writeAdmission.onPut(tail);
            store.objectLinks.unlink(tail);
            writeAdmission.onUsed(head);
        }
        int head = insert(RecordFlags.ofObject(things), 0);
        int tail = insert(RecordFlags.ofObject(things), 0);
        assertThat(store.objectLinks.link(tail, head)).isTrue();
        assertThat(writeAdmission.onPut(head)).isTrue();
        assertThat(writeAdmission.onPut(tail)).isFalse();
    }

    @Test
    void givenShortPromptsThatReturnAndLongOnesThatDoNot_whenMoreArePut_thenOnlyTheShortAreWorthAWrite() {
        writeAdmission.start(AdmissionKind.VALUE, GAIN);
        for (int i = 0; i < 20; i++) {
            use(putPrompt(4));
            putPrompt(32);
        }
        assertThat(writeAdmission.isWorthWriting(putPrompt(4)[3])).isTrue();
        assertThat(writeAdmission.isWorthWriting(putPrompt(32)[3])).isFalse();
    }

    @Test
    void givenUsesThatComeLaterThanADiskKeepsACopy_whenMoreIsPut_thenTheyDoNotCount() {
        writeAdmission.start(AdmissionKind.VALUE, GAIN);
        int disk = Math.toIntExact(Math.round(DISK_BYTES / AdmissionKind.WRITTEN_SHARE / BYTES));
        int[][] late = new int[20][];
        for (int i = 0; i < late.length; i++) {
            late[i] = putPrompt(4);
        }
        for (int i = 0; i <= disk; i++) {
            writeAdmission.onPut(block(0));
        }
        for (int[] prompt : late) {
            use(prompt);
        }
        assertThat(writeAdmission.isWorthWriting(putPrompt(4)[3])).isFalse();
    }

    @Test
    void givenPromptsThatLeftBeforeTheyWereUsed_whenTheyReturnInLongerOnes_thenThatSpeaksForTheirKind() {
        writeAdmission.start(AdmissionKind.VALUE, GAIN);
        for (int i = 0; i < 20; i++) {
            int[] prompt = putPrompt(4);
            for (int record : prompt) {
                writeAdmission.onForgotten(record);
            }
            for (int at = 0; at < prompt.length; at++) {
                writeAdmission.onPutStarted(prompt[at], 32 - at);
                writeAdmission.onPut(prompt[at]);
            }
            putPrompt(32);
        }
        assertThat(writeAdmission.isWorthWriting(putPrompt(4)[3])).isTrue();
        assertThat(writeAdmission.isWorthWriting(putPrompt(32)[3])).isFalse();
    }
}
