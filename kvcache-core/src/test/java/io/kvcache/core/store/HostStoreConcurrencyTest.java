package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.CacheStats;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Threads that put, get, drop and evict in one small store, with real bytes. Whatever one of them pins is
/// checked to the last byte while it is pinned; afterwards nothing is left behind.
///
/// A failure names the seed; the threads' own choices follow from it, their interleaving does not.
final class HostStoreConcurrencyTest {

    private static final int THREADS = 4;
    private static final int OPERATIONS = Repetitions.of("kvcache.concurrent.ops", 800, 2500);

    @ParameterizedTest
    @CsvSource({"1, LRU, 64, 4000", "2, IMPORTANCE, 96, 4000", "3, LRU, 64, 50", "4, IMPORTANCE, 48, 4000"})
    @Tag("slow")
    void givenManyThreads_whenTheyPutGetAndDrop_thenNoByteIsWrongAndNothingLeaks(
            long seed, PolicyKind policy, int hostMib, int records) throws Exception {
        HostStoreConfig config = new HostStoreConfig((long) hostMib << 20, records, policy, 1 << 14);
        try (HostStore store = new HostStore(config, ArenaMemory.source())) {
            StoreWorker.WorkerContext workerContext = StoreWorker.WorkerContext.open(store);
            List<StoreWorker> workers = new ArrayList<>();
            for (int thread = 0; thread < THREADS; thread++) {
                workers.add(new StoreWorker(workerContext, seed * 100 + thread));
            }
            run(workers);
            store.validate();
            requireNothingLeft(store, workerContext);
            assertThat(workers.stream().mapToLong(StoreWorker::blocksRead).sum())
                    .as("blocks read, seed %d", seed)
                    .isPositive();
            assertThat(workers.stream().mapToLong(StoreWorker::objectsRead).sum())
                    .as("objects read, seed %d", seed)
                    .isPositive();
        }
    }

    private static void run(List<StoreWorker> workers) throws Exception {
        try (ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
            List<Future<?>> running = new ArrayList<>();
            workers.forEach(worker -> running.add(threads.submit(() -> worker.run(OPERATIONS))));
            for (Future<?> each : running) {
                each.get();
            }
        }
    }

    private static void requireNothingLeft(HostStore store, StoreWorker.WorkerContext workerContext) {
        workerContext.spaces().forEach(testNamespace -> store.dropAll(testNamespace.entry()));
        store.dropAll(workerContext.objects());
        CacheStats stats = store.stats(0);
        assertThat(stats.records().live()).isZero();
        assertThat(stats.host().heldBytes()).isZero();
        assertThat(stats.host().unusedSlabs()).isEqualTo(stats.host().slabs());
        assertThat(stats.puts().reserved()).isPositive();
        assertThat(stats.removals().evicted()).isPositive();
        store.validate();
    }
}
