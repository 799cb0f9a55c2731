package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.NoveltyClass;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.SlotAllocator.NoveltyClassifier;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.core.tree.RecordPool.NewRecordFields;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class NoveltyClassifierTest {

    private static final int RECORDS = 1000;
    private static final int TOKENS = 512;
    private static final Namespace SPACE = Namespace.of("m", BlockShape.mla(1, 8, TOKENS, Dtype.INT8));
    private static final Namespace THINGS = Namespace.objects("things", "t");

    private final HostStore store = new HostStore(
            new HostStoreConfig(SlabPool.MIN_BYTES, RECORDS, PolicyKind.IMPORTANCE, 64), ArenaMemory.source());
    private final RecordPool pool = store.pool;
    private final NamespaceEntry space = store.register(SPACE);
    private final int things = store.register(THINGS).id();
    private final NoveltyClassifier noveltyClassifier = new NoveltyClassifier(pool, store.policies, store.shares);

    @AfterEach
    void close() {
        store.close();
    }

    /// The prompt of that many blocks that begins all longer ones.
    private static BlockChain prompt(int blocks) {
        return BlockChain.of(SPACE, IntStream.range(0, blocks * TOKENS).toArray());
    }

    /// Puts a block behind another, as a put does.
    private int put(BlockChain chain, int index, int parent) {
        int identity = RecordFlags.ofBlock(space.id(), noveltyClassifier.classify(space, chain, index, parent));
        return insert(chain, index, parent, identity);
    }

    private int insert(BlockChain chain, int index, int parent, int identity) {
        NewRecordFields record =
                new NewRecordFields(chain.keyHi(index), chain.keyLo(index), parent, index, identity, 4096, 0, 0);
        return store.tree.insert(record, ControlWord.SEALED, 0);
    }

    private int cohort(int record) {
        return store.objectLinks.noveltyClass(record);
    }

    @Test
    void givenALongPrompt_whenItsBlocksArePut_thenAllAreOfOneCohort() {
        BlockChain chain = prompt(40);
        int parent = NONE;
        for (int i = 0; i < chain.length(); i++) {
            parent = put(chain, i, parent);
            assertThat(cohort(parent)).as("block %d", i).isEqualTo(NoveltyClass.of(40 * TOKENS));
        }
    }

    @Test
    void givenAPromptComputedInParts_whenTheNextPartIsPut_thenItIsOfTheSameCohort() {
        int first = put(prompt(40), 0, NONE);
        int next = put(prompt(2), 1, first);
        assertThat(cohort(next)).isEqualTo(NoveltyClass.of(40 * TOKENS));
    }

    @Test
    void givenAPromptThatWasUsed_whenAQuestionIsPutBehindIt_thenThatIsACohortOfItsOwn() {
        int first = put(prompt(40), 0, NONE);
        store.recordStates.onUsed(first);
        int next = put(prompt(2), 1, first);
        assertThat(cohort(first)).isEqualTo(NoveltyClass.of(40 * TOKENS));
        assertThat(cohort(next)).isEqualTo(NoveltyClass.of(TOKENS));
    }

    @Test
    void givenBlocksThatThePolicyRemembers_whenThePromptIsPutAgain_thenOnlyTheOthersCount() {
        BlockChain chain = prompt(40);
        EvictionPolicy policy = store.policies.getOrCreate(space.slotClass().id(), MemoryShares.DEFAULT_GROUP);
        int parent = NONE;
        for (int i = 0; i < 37; i++) {
            int record = put(chain, i, parent);
            policy.admit(record);
            policy.onEvicted(record);
            parent = record;
        }
        assertThat(noveltyClassifier.classify(space, chain, 0, NONE)).isEqualTo(NoveltyClass.of(3 * TOKENS));
        assertThat(noveltyClassifier.classify(space, prompt(37), 0, NONE)).isEqualTo(NoveltyClass.of(0));
    }

    @Test
    void givenBlocksOfWhichNobodyKnowsWhatCameWithThem_whenAsked_thenTheirDepthSpeaksForThem() {
        BlockChain chain = prompt(30);
        int named = insert(chain, 20, NONE, RecordFlags.ofBlock(space.id(), -1));
        int restored = insert(chain, 21, NONE, RecordFlags.ofBlock(space.id()));
        int object = insert(chain, 0, NONE, RecordFlags.ofObject(things));
        assertThat(cohort(named)).isEqualTo(NoveltyClass.ofSingleBlock(20));
        assertThat(cohort(restored)).isEqualTo(NoveltyClass.ofSingleBlock(21));
        assertThat(cohort(object)).isEqualTo(NoveltyClass.ofSingleBlock(0));
    }

    @Test
    void givenABlockOfAnUnknownCohort_whenAChainIsPutBehindIt_thenThatOneIsCounted() {
        BlockChain chain = prompt(40);
        int first = insert(chain, 0, NONE, RecordFlags.ofBlock(space.id(), -1));
        assertThat(cohort(put(chain, 1, first))).isEqualTo(NoveltyClass.of(39 * TOKENS));
    }
}
