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
import org.junit.jupiter.api.Test;

final class ProspectsTest {

    private static final int RECORDS = 1000;
    private static final int BLOCK_TOKENS = 4096;
    private static final int BYTES = 4 * BLOCK_TOKENS;
    private static final Namespace SPACE =
            Namespace.of("m", BlockShape.mla(1, BYTES / BLOCK_TOKENS, BLOCK_TOKENS, Dtype.INT8));
    private static final Namespace THINGS = Namespace.objects("things", "t");
    private static final int FAR = 40;

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

    @AfterEach
    void close() {
        memory.close();
        slots.close();
    }

    private int insert(int identity, int depth) {
        return parts.tree().insert(new NewRecord(++key, key, NONE, depth, identity, BYTES, 0, 0), Control.SEALED, 0);
    }

    private int block(int depth) {
        return insert(Identity.block(space, 0), depth);
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
        prospects.cost().of(PrefillCost.atRate(10_000));
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
}
