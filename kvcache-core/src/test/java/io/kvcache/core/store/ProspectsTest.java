package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.event.EventLog;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.HostMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.NewRecord;
import io.kvcache.core.tree.RecordLayout;
import io.kvcache.core.tree.RecordPool;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

final class ProspectsTest {

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

    private final HostMemory slots = ArenaMemory.source().reserve("slots", SlabPool.SLAB_BYTES);
    private final HostMemory memory = ArenaMemory.source().reserve("records", RecordLayout.spanBytes(RECORDS));
    private final RecordPool pool = new RecordPool(memory.segment(), RECORDS);
    private final StoreParts parts =
            StoreParts.of(pool, new SlabPool(slots.segment()), PolicyKind.LRU, new EventLog(64));
    private final int space = Registration.add(parts, SPACE).id();
    private final int things = Registration.add(parts, THINGS).id();
    private final Prospects prospects = new Prospects(
            pool, parts.chains(), parts.namespaces(), parts.policies().state());
    private long key;

    @BeforeEach
    void open() {
        prospects.opened(DISK_BYTES);
    }

    @AfterEach
    void close() {
        memory.close();
        slots.close();
    }

    private int insert(int identity, int depth) {
        return parts.tree().insert(new NewRecord(++key, key, NONE, depth, identity, BYTES, 0, 0), Control.SEALED, 0);
    }

    private int block(int depth) {
        return insert(Identity.block(space), depth);
    }

    /// The blocks of a prompt, none of which was here.
    private int[] putPrompt(int blocks) {
        int[] prompt = new int[blocks];
        int parent = NONE;
        for (int i = 0; i < blocks; i++) {
            NewRecord next = new NewRecord(++key, key, parent, i, Identity.block(space), BYTES, 0, 0);
            prompt[i] = parts.tree().insert(next, Control.SEALED, 0);
            prospects.begins(prompt[i], blocks - i);
            prospects.put(prompt[i]);
            parent = prompt[i];
        }
        return prompt;
    }

    private void use(int[] prompt) {
        for (int record : prompt) {
            prospects.used(record);
        }
    }

    private void putNearTheStart(int blocks) {
        for (int i = 0; i < blocks; i++) {
            assertThat(prospects.put(block(0))).isFalse();
        }
    }

    @Test
    void givenTheSameOdds_whenABlockLiesFarIntoItsPrompt_thenItIsWorthAWriteAndAFirstOneIsNot() {
        prospects.begin(AdmissionKind.VALUE, GAIN);
        putNearTheStart(5);
        assertThat(prospects.put(block(FAR))).isTrue();
    }

    @Test
    void givenAnEngineThatTakesAsLongEverywhere_whenABlockLiesFarIntoItsPrompt_thenItIsWorthNoMore() {
        prospects.begin(AdmissionKind.VALUE, GAIN);
        prospects.cost().of(PrefillCost.ofTokenRate(10_000));
        putNearTheStart(5);
        assertThat(prospects.put(block(FAR))).isFalse();
    }

    @Test
    void givenABlockThatIsNotWorthAWrite_whenItIsUsed_thenItIs() {
        prospects.begin(AdmissionKind.VALUE, GAIN);
        int block = block(0);
        assertThat(prospects.put(block)).isFalse();
        assertThat(prospects.used(block)).isTrue();
    }

    @Test
    void givenABlockThatHasLeft_whenItIsPutAgain_thenThatIsAUse() {
        prospects.begin(AdmissionKind.SECOND_HIT, GAIN);
        int block = block(0);
        assertThat(prospects.put(block)).isFalse();
        prospects.left(block);
        assertThat(prospects.put(block)).isTrue();
    }

    @Test
    void givenObjectsBehindOthersThatNobodyReads_whenMoreArePut_thenThoseBehindAreNotWorthAWrite() {
        prospects.begin(AdmissionKind.VALUE, AdmissionKind.USUAL_GAIN);
        for (int i = 0; i < RECORDS / 4; i++) {
            int head = insert(Identity.object(things), 0);
            int tail = insert(Identity.object(things), 0);
            assertThat(parts.chains().link(tail, head)).isTrue();
            prospects.put(head);
            prospects.put(tail);
            parts.chains().cut(tail);
            prospects.used(head);
        }
        int head = insert(Identity.object(things), 0);
        int tail = insert(Identity.object(things), 0);
        assertThat(parts.chains().link(tail, head)).isTrue();
        assertThat(prospects.put(head)).isTrue();
        assertThat(prospects.put(tail)).isFalse();
    }

    @Test
    void givenShortPromptsThatReturnAndLongOnesThatDoNot_whenMoreArePut_thenOnlyTheShortAreWorthAWrite() {
        prospects.begin(AdmissionKind.VALUE, GAIN);
        for (int i = 0; i < 20; i++) {
            use(putPrompt(4));
            putPrompt(32);
        }
        assertThat(prospects.isWorth(putPrompt(4)[3])).isTrue();
        assertThat(prospects.isWorth(putPrompt(32)[3])).isFalse();
    }

    @Test
    void givenUsesThatComeLaterThanADiskKeepsACopy_whenMoreIsPut_thenTheyDoNotCount() {
        prospects.begin(AdmissionKind.VALUE, GAIN);
        int disk = Math.toIntExact(Math.round(DISK_BYTES / AdmissionKind.WRITTEN_SHARE / BYTES));
        int[][] late = new int[20][];
        for (int i = 0; i < late.length; i++) {
            late[i] = putPrompt(4);
        }
        for (int i = 0; i <= disk; i++) {
            prospects.put(block(0));
        }
        for (int[] prompt : late) {
            use(prompt);
        }
        assertThat(prospects.isWorth(putPrompt(4)[3])).isFalse();
    }

    @Test
    void givenPromptsThatLeftBeforeTheyWereUsed_whenTheyReturnInLongerOnes_thenThatSpeaksForTheirKind() {
        prospects.begin(AdmissionKind.VALUE, GAIN);
        for (int i = 0; i < 20; i++) {
            int[] prompt = putPrompt(4);
            for (int record : prompt) {
                prospects.left(record);
            }
            for (int at = 0; at < prompt.length; at++) {
                prospects.begins(prompt[at], 32 - at);
                prospects.put(prompt[at]);
            }
            putPrompt(32);
        }
        assertThat(prospects.isWorth(putPrompt(4)[3])).isTrue();
        assertThat(prospects.isWorth(putPrompt(32)[3])).isFalse();
    }
}
