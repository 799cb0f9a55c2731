package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.tree.RecordHandle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// The operations on blocks of a [RandomStoreRun].
final class RandomBlocks {

    private static final int FAMILIES = 4;

    private final RandomStoreRun run;
    private final HostStore store;
    private final List<TestNamespace> spaces;

    RandomBlocks(RandomStoreRun run) {
        this.run = run;
        store = run.store;
        spaces = TestNamespace.SIZES.stream()
                .map(size -> TestNamespace.register(store, size, FAMILIES))
                .toList();
    }

    /// Small blocks more often: it takes many of them to fill anything.
    private TestNamespace anySpace() {
        return spaces.get(Math.min(run.random.nextInt(spaces.size()), run.random.nextInt(spaces.size())));
    }

    private BlockChain anyChain(TestNamespace testNamespace) {
        return testNamespace
                .chains()
                .get(run.random.nextInt(testNamespace.chains().size()));
    }

    void step() {
        TestNamespace testNamespace = anySpace();
        BlockChain chain = anyChain(testNamespace);
        int dice = run.random.nextInt(100);
        if (dice < 50) {
            pin(testNamespace, chain);
        } else if (dice < 70) {
            touch(chain);
        } else if (dice < 85) {
            drop(chain, run.random.nextInt(chain.length()));
        } else if (dice < 98) {
            hint(chain, run.random.nextInt(chain.length() + 1), dice);
        } else {
            dropAll(testNamespace);
        }
    }

    private void hint(BlockChain chain, int from, int dice) {
        switch (dice % 4) {
            case 0 -> store.hints().release(chain, from);
            case 1 -> store.hints().label(chain, from, (dice + from) % EvictionPolicy.REUSE_CLASSES);
            case 2 -> {
                int[] halvings = new int[chain.length() - from];
                Arrays.fill(halvings, from % (EvictionPolicy.MAX_HALVINGS + 1));
                store.hints().setWeights(chain, from, halvings);
            }
            default -> store.hints().demote(chain, from);
        }
    }

    void reserve() {
        TestNamespace testNamespace = anySpace();
        BlockChain chain = anyChain(testNamespace);
        int index = run.random.nextInt(8) == 0 ? run.random.nextInt(chain.length()) : firstMissing(chain);
        BlockKey key = chain.key(index);
        BlockKey parent = index == 0 ? null : chain.key(index - 1);
        boolean present = run.has(key);
        boolean busy = run.model.beingWritten(key);
        boolean findable = parent == null || run.has(parent) || run.model.beingWritten(parent);
        PutReservation answer = run.counted(store.reserve(testNamespace.entry(), chain, index));
        if (busy) {
            assertThat(answer.outcome()).isEqualTo(PutOutcome.BUSY);
        } else if (present) {
            assertThat(answer.outcome()).isEqualTo(PutOutcome.PRESENT);
        } else if (!findable) {
            assertThat(answer.outcome()).isEqualTo(PutOutcome.NO_PARENT);
        } else {
            reserved(testNamespace, key, parent, answer);
        }
    }

    private void reserved(TestNamespace testNamespace, BlockKey key, @Nullable BlockKey parent, PutReservation answer) {
        if (answer.outcome() == PutOutcome.NO_ROOM) {
            assertThat(run.idle() && parent == null)
                    .as("room for " + key + " in an idle store")
                    .isFalse();
            return;
        }
        assertThat(answer.outcome()).isEqualTo(PutOutcome.RESERVED);
        run.model
                .forget(key)
                .forEach(evicted -> assertThat(run.has(evicted.key))
                        .as("%s is below an evicted block", evicted.key)
                        .isFalse());
        int id = testNamespace.entry().id();
        run.opened(new RandomStoreRun.Writer(
                answer.record(), run.model.open(key, parent, id, testNamespace.blockBytes())));
    }

    private int firstMissing(BlockChain chain) {
        int index = 0;
        while (index < chain.length() - 1 && (run.has(chain.key(index)) || run.model.beingWritten(chain.key(index)))) {
            index++;
        }
        return index;
    }

    private void pin(TestNamespace testNamespace, BlockChain chain) {
        int blocks = store.lookup().match(chain, chain.length());
        for (int index = 0; index < chain.length(); index++) {
            assertThat(run.has(chain.key(index)))
                    .as("block %d of a match of %d", index, blocks)
                    .isEqualTo(index < blocks);
        }
        long handle = store.lookup().pinDeepest(chain);
        assertThat(RecordHandle.isFound(handle)).isEqualTo(blocks > 0);
        if (blocks == 0) {
            return;
        }
        int record = RecordHandle.record(handle);
        assertThat(store.records().depth(record)).isEqualTo(blocks - 1);
        List<StoreModel.Entry> path = new ArrayList<>();
        int at = record;
        for (int index = blocks - 1; index >= 0; index--) {
            StoreModel.Entry entry = Objects.requireNonNull(run.model.get(chain.key(index)));
            assertThat(entry.stage).isEqualTo(StoreModel.Stage.SEALED);
            assertThat(entry.space).isEqualTo(testNamespace.entry().id());
            assertThat(store.records().keyHi(at)).isEqualTo(chain.keyHi(index));
            assertThat(store.records().keyLo(at)).isEqualTo(chain.keyLo(index));
            path.add(entry);
            at = store.records().parent(at);
        }
        run.pinned(new RandomStoreRun.Pinned(record, path));
    }

    private void touch(BlockChain chain) {
        int blocks = store.lookup().match(chain, chain.length());
        if (blocks > 0) {
            store.lookup().touch(store.lookup().find(chain.keyHi(blocks - 1), chain.keyLo(blocks - 1)));
        }
    }

    private void drop(BlockChain chain, int from) {
        List<BlockKey> there = findable(entry -> true);
        List<StoreModel.Entry> gone = run.model.forget(chain.key(from));
        long expected = gone.stream().filter(entry -> there.contains(entry.key)).count();
        assertThat(store.drop(chain.keyHi(from), chain.keyLo(from))).isEqualTo((int) expected);
        gone.forEach(entry -> assertThat(run.has(entry.key)).isFalse());
    }

    void dropAll(TestNamespace testNamespace) {
        int id = testNamespace.entry().id();
        long expected = findable(entry -> entry.space == id).size();
        for (BlockChain chain : testNamespace.chains()) {
            run.model.forget(chain.key(0));
        }
        assertThat(store.dropAll(testNamespace.entry())).isEqualTo(expected);
        testNamespace
                .chains()
                .forEach(chain -> assertThat(run.has(chain.key(0))).isFalse());
    }

    void dropSpaces() {
        spaces.stream()
                .sorted(Comparator.comparingLong(TestNamespace::blockBytes))
                .forEach(this::dropAll);
    }

    private List<BlockKey> findable(Predicate<StoreModel.Entry> which) {
        List<BlockKey> keys = new ArrayList<>();
        for (StoreModel.Entry entry : run.model.all()) {
            if (which.test(entry) && entry.stage == StoreModel.Stage.SEALED && run.has(entry.key)) {
                keys.add(entry.key);
            }
        }
        return keys;
    }
}
