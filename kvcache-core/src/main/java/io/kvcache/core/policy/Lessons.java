package io.kvcache.core.policy;

/// What [Importance] remembers of all blocks, resident or gone, and what follows for its leaves.
///
/// Each block that is remembered counts in [LeafBuckets] under its class and the span of its last use.
/// Once a turn, time is added up for all of them at once, list by list, so nothing is done for blocks
/// that nobody uses. A turn is 64 uses or a 64th of the resident blocks, whichever is more; the model
/// is computed anew every 1,024 uses or an eighth of them. Uses of this instance's blocks are meant: others
/// move the clock that all share, but give this one nothing to do.
///
/// **Threads.** One writer, the holder of the store's lock.
final class Lessons {

    /// Evicted blocks that even a small cache remembers, 8 bytes each.
    private static final int FEWEST_DEPARTED = 1 << 13;

    private static final int SHORTEST_TURN = 64;
    private static final int TURNS_IN_MEMORY = 64;
    private static final int SHORTEST_LESSON = 1024;
    private static final int LESSONS_IN_MEMORY = 8;

    /// Above every density.
    private static final float EXEMPT = 1e6f;

    private final ImportanceRules rules;
    private final LeafBuckets buckets;
    private final ReuseModel model;
    private Departed departed = new Departed(1);
    private long turnBegan;
    private int turnLength = 1;
    private int usesInTurn;
    private long usesInLesson;

    /// @param now reading of the clock that orders uses
    Lessons(ImportanceRules rules, LeafBuckets buckets, long now) {
        this.rules = rules;
        this.buckets = buckets;
        model = new ReuseModel(rules);
        turnBegan = now;
    }

    /// A resident block with this word is remembered from now on.
    void begin(long word) {
        buckets.track(bucket(word), 1);
    }

    /// It is remembered no longer, or with another word.
    void end(long word) {
        buckets.track(bucket(word), -1);
    }

    /// A resident block with this word was used, or became known to be used.
    void used(long word, long now) {
        learn(BlockWord.classOf(word), now - BlockWord.stamp(word));
        end(word);
    }

    /// A block is used that is not resident.
    ///
    /// @return the uses that are known of it, this one included, 1 to [BlockWord#MOST_USES]
    int returned(long fingerprint, long now) {
        long entry = departed.take(fingerprint);
        if (entry == Departed.NONE) {
            return 1;
        }
        int classId = Departed.classOf(entry);
        learn(classId, now - Departed.lastUse(entry));
        forgotten(entry);
        return Math.min(BlockWord.MOST_USES, BlockWord.usesOf(classId) + 1);
    }

    /// A block with this word was evicted.
    ///
    /// @param size resident blocks; the memory of those that are gone follows it, and is begun anew
    ///     when it grows
    void departs(long fingerprint, long word, int size) {
        double wanted = Math.max(FEWEST_DEPARTED, rules.ghosts() * size);
        if (departed.capacity() < wanted) {
            departed.forEach(this::forgotten);
            departed = new Departed((long) wanted);
        }
        int classId = BlockWord.ownClass(word);
        long lastUse = Departed.rounded(BlockWord.stamp(word));
        forgotten(departed.take(fingerprint));
        forgotten(departed.put(fingerprint, classId, lastUse));
        end(word);
        buckets.track(buckets.bucket(classId, lastUse), 1);
    }

    /// A block of this instance is used.
    ///
    /// @return whether time is to pass
    boolean isDue() {
        return ++usesInTurn >= turnLength;
    }

    /// Lets time pass for everything that is remembered. The lists are to be ranked then.
    ///
    /// @param size resident blocks
    void turn(long now, int size) {
        for (int span = 0; span < buckets.spans(); span++) {
            expose(span, now);
        }
        buckets.cut(now);
        usesInLesson += usesInTurn;
        if (usesInLesson >= Math.max(SHORTEST_LESSON, size / LESSONS_IN_MEMORY)) {
            double halfLives = usesInLesson / (rules.halfLife() * Math.max(SHORTEST_LESSON, size));
            model.refresh(Math.pow(0.5, halfLives), AgeBins.of(buckets.age(0, now)));
            usesInLesson = 0;
        }
        turnBegan = now;
        usesInTurn = 0;
        turnLength = Math.max(SHORTEST_TURN, size / TURNS_IN_MEMORY);
    }

    /// Ranks all lists by what their leaves are worth. What is known to be used soon is above all
    /// others.
    ///
    /// @param copyWorth what is lost with a block that a slower tier has too, as a share of what is lost
    ///     with one that is to
    ///     be computed again
    void rankByWorth(long now, double copyWorth) {
        for (int span = 0; span < buckets.spans(); span++) {
            int bin = AgeBins.of(buckets.age(span, now));
            for (int classId = 0; classId < ReuseModel.CLASSES; classId++) {
                float density = model.density(classId, bin);
                buckets.rank(buckets.at(classId, span), density);
                buckets.rank(buckets.at(BlockWord.copiedClass(classId), span), (float) (density * copyWorth));
            }
            buckets.rank(buckets.at(BlockWord.EXPECTED_CLASS, span), EXEMPT - span);
        }
        buckets.ranked();
    }

    /// Ranks all lists by last use alone.
    void rankByAge() {
        for (int span = 0; span < buckets.spans(); span++) {
            for (int classId = 0; classId < BlockWord.LISTS; classId++) {
                buckets.rank(buckets.at(classId, span), span);
            }
        }
        buckets.ranked();
    }

    /// What a resident block with this word is worth.
    ///
    /// @param byAge by its last use alone
    double worth(long word, long now, boolean byAge) {
        return switch (BlockWord.standing(word)) {
            case BlockWord.DEMOTED -> 0;
            case BlockWord.EXPECTED -> EXEMPT;
            default -> worth(BlockWord.ownClass(word), now - BlockWord.stamp(word), byAge);
        };
    }

    /// What a block is worth that is not resident, by what is remembered of it: 0 when nothing is.
    double worthOfDeparted(long fingerprint, long now, boolean byAge) {
        long entry = departed.find(fingerprint);
        return entry == Departed.NONE ? 0 : worth(Departed.classOf(entry), now - Departed.lastUse(entry), byAge);
    }

    private double worth(int classId, long age, boolean byAge) {
        return byAge ? 1.0 / (1 + age) : model.density(classId, AgeBins.of(age));
    }

    /// Bytes of the memory of evicted blocks.
    long departedBytes() {
        return departed.bytes();
    }

    private void expose(int span, long now) {
        int bin = AgeBins.of(buckets.age(span, now));
        for (int classId = 0; classId < ReuseModel.CLASSES; classId++) {
            int tracked = buckets.tracked(buckets.at(classId, span))
                    + buckets.tracked(buckets.at(BlockWord.copiedClass(classId), span));
            if (tracked > 0) {
                model.unused(classId, bin, (double) tracked * (now - turnBegan));
            }
        }
    }

    private void learn(int classId, long age) {
        if (classId != BlockWord.EXPECTED_CLASS) {
            model.used(classId, age);
        }
    }

    private void forgotten(long entry) {
        if (entry != Departed.NONE) {
            buckets.track(buckets.bucket(Departed.classOf(entry), Departed.lastUse(entry)), -1);
        }
    }

    private int bucket(long word) {
        return buckets.bucket(BlockWord.listOf(word), BlockWord.stamp(word));
    }
}
