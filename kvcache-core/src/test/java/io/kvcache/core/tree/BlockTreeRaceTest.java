package io.kvcache.core.tree;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.tree.RecordPool.NewRecordFields;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Readers without a lock beside a writer that hammers the same few buckets with the same few records.
///
/// Some keys stay throughout, though their records are replaced: missing one is a lie. The others come and go:
/// finding one must answer a record that held that very key while the handle's generation was its own.
final class BlockTreeRaceTest {

    private static final int RECORDS = 16;
    private static final int STAYING = 4;

    /// At the first of the keys that stay, at any moment.
    private static final int WRITERS = 3;

    private static final int COMING = 24;
    private static final int MAX_ADDED = RECORDS - STAYING - WRITERS - 1; // one is for replacing
    private static final int READERS = 2;
    private static final int REMEMBERED = 1 << 16;
    private static final int WRITES = Repetitions.of("kvcache.race.writes", 3_000_000, 10_000_000);

    private final RecordPool pool =
            new RecordPool(Arena.ofShared().allocate(RecordLayout.spanBytes(RECORDS), 64), RECORDS);
    private final BlockTree tree = new BlockTree(pool);
    private final int[] staying = new int[STAYING];
    private final int[] writers = new int[WRITERS];
    private volatile boolean done;

    /// Key of each of a record's last [#REMEMBERED] generations.
    private final long[][] keyOfGeneration = new long[RECORDS][REMEMBERED];

    /// Keys that fall into two buckets only.
    private static long key(int number) {
        return (long) (number & 1) << 63 | number;
    }

    private int insert(long key) {
        int record = reserve(key);
        if (record >= 0) {
            pool.state(record, ControlWord.SEALED, 0);
        }
        return record;
    }

    private int reserve(long key) {
        int record = tree.insert(new NewRecordFields(~key, key, -1, 0, 0, 4096, 0, 0));
        if (record >= 0) {
            int generation = ControlWord.generation(pool.control(record));
            keyOfGeneration[record][generation & (REMEMBERED - 1)] = key;
        }
        return record;
    }

    @Test
    @Tag("slow")
    void givenAWriterInTheSameBuckets_whenReadersLookUp_thenNoFalseHitAndNoFalseMiss() throws Exception {
        for (int number = 0; number < STAYING; number++) {
            staying[number] = insert(key(number));
        }
        for (int writer = 0; writer < WRITERS; writer++) {
            writers[writer] = reserve(key(0));
        }
        try (ExecutorService threads = Executors.newFixedThreadPool(READERS)) {
            List<Future<Long>> readers = new ArrayList<>();
            for (int reader = 0; reader < READERS; reader++) {
                readers.add(threads.submit(reader(100 + reader)));
            }
            try {
                write(new SplittableRandom(1));
            } finally {
                done = true;
            }
            for (Future<Long> reader : readers) {
                assertThat(reader.get()).as("look-ups that answered").isPositive();
            }
        }
    }

    private void write(SplittableRandom random) {
        int[] coming = new int[RECORDS];
        int count = 0;
        for (int i = 0; i < WRITES; i++) {
            if (random.nextInt(8) == 0) {
                replace(random.nextInt(STAYING), random);
            } else if (count > 0 && (count == MAX_ADDED || random.nextInt(3) == 0)) {
                int at = random.nextInt(count);
                tree.removeFromIndex(coming[at]);
                tree.remove(coming[at]);
                coming[at] = coming[--count];
            } else {
                long key = key(STAYING + random.nextInt(COMING));
                if (tree.findAny(~key, key) < 0) {
                    coming[count++] = insert(key);
                }
            }
        }
    }

    /// As a store replaces an object: the new one is findable before the old one is not.
    private void replace(int number, SplittableRandom random) {
        int older = staying[number];
        if (random.nextBoolean()) {
            overwrite(older, key(number));
            return;
        }
        int writer = random.nextInt(WRITERS);
        if (number == 0) {
            staying[0] = writers[writer];
            pool.state(staying[0], ControlWord.SEALED, 0);
        } else {
            staying[number] = insert(key(number));
        }
        pool.state(older, ControlWord.DELETED, 0);
        tree.removeFromIndex(older);
        tree.remove(older);
        if (number == 0) {
            writers[writer] = reserve(key(0));
        }
    }

    /// As a store gives a small object other bytes where it lies.
    private void overwrite(int record, long key) {
        int generation = ControlWord.generation(pool.control(record)) + 1;
        keyOfGeneration[record][generation & (REMEMBERED - 1)] = key;
        assertThat(pool.claimForOverwrite(record)).isTrue();
        pool.finishOverwrite(record, 4096, 0);
    }

    private Callable<Long> reader(long seed) {
        return () -> {
            SplittableRandom random = new SplittableRandom(seed);
            long answered = 0;
            while (!done || answered == 0) { // one that comes late looks at what has come to rest
                int number = random.nextInt(STAYING + COMING);
                long key = key(number);
                long handle = tree.find(~key, key);
                if (number < STAYING && handle == RecordHandle.MISS) {
                    throw new AssertionError("false miss of key " + number + ", reader seed " + seed);
                }
                if (RecordHandle.isFound(handle)) {
                    checkHit(key, RecordHandle.record(handle), RecordHandle.generation(handle));
                }
                answered += handle == RecordHandle.UNSURE ? 0 : 1;
            }
            return answered;
        };
    }

    private void checkHit(long key, int record, int generation) {
        long held = keyOfGeneration[record][generation & (REMEMBERED - 1)];
        // A reader that slept for that many generations looks at what a later one had.
        boolean remembered = ControlWord.generation(pool.control(record)) - generation < REMEMBERED;
        if (held != key && remembered) {
            throw new AssertionError("false hit: key " + key + " gave the record of " + held);
        }
    }
}
