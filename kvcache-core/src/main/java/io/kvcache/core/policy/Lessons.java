package io.kvcache.core.policy;

import java.util.HashMap;
import java.util.Map;

/// What [Importance] remembers of all blocks, resident or gone, and what follows for its leaves.
///
/// Each block that is remembered counts in [Remembered] under its kind and the span of its last
/// use. Once a turn, time passes for all of them at once, so nothing is done for blocks that nobody
/// uses. A turn is 16 uses or a 64th of the resident blocks, whichever is more; the model is
/// computed anew every 1,024 uses or an eighth of them. Uses of this instance's blocks are meant:
/// others move the clock that all share, but give this one nothing to do.
///
/// **Threads.** One writer, the holder of the store's lock.
final class Lessons {

    /// Evicted blocks that even a small cache remembers, 8 bytes each.
    private static final int FEWEST_DEPARTED = 1 << 13;

    private static final int SHORTEST_TURN = 16;
    private static final int TURNS_IN_MEMORY = 64;
    private static final int SHORTEST_LESSON = 1024;
    private static final int LESSONS_IN_MEMORY = 8;

    /// Nothing is known of a block that returns.
    private static final int UNKNOWN = -1;

    private static final int KINDS = ReuseModel.CLASSES * Said.REUSE_CLASSES;
    /// From here on a class of [Departed] says that a use of the block was announced, which is to come:
    /// so many steps of use, in each label.
    private static final int ANNOUNCED = KINDS;

    private final ImportanceRules rules;
    private final PolicyState state;
    private final Remembered remembered;
    private final LeafBuckets buckets;
    private final Lanes lanes;
    private final ReuseModel model;
    private final Ranks ranks;
    private Departed departed = new Departed(1);
    private long turnBegan;
    private int turnLength = 1;
    private int usesInTurn;
    private long usesInLesson;

    Lessons(ImportanceRules rules, PolicyState state, Lanes lanes) {
        this.rules = rules;
        this.state = state;
        this.lanes = lanes;
        model = new ReuseModel(rules);
        ranks = new Ranks(lanes, model);
        remembered = new Remembered(model);
        buckets = new LeafBuckets(state, ranks, remembered);
        turnBegan = state.now();
    }

    /// The lists of the leaves.
    LeafBuckets buckets() {
        return buckets;
    }

    /// Sees that there are lists and rows for what is said of a block. The lists are to be ranked
    /// when there were none.
    ///
    /// @return whether there were none
    boolean open(byte said) {
        int before = lanes.count();
        int labels = lanes.labels();
        lanes.open(said);
        if (lanes.labels() > labels) {
            model.addLabel();
            remembered.addLabel();
        }
        for (int lane = before; lane < lanes.count(); lane++) {
            buckets.addLane();
        }
        return lanes.count() > before;
    }

    /// A resident block with this word is remembered from now on.
    void begin(int lane, long word) {
        countResident(lane, word, 1);
    }

    /// It is remembered no longer, or in another lane, or with another word.
    void end(int lane, long word) {
        countResident(lane, word, -1);
    }

    /// A resident block with this word was used, or became known to be used.
    void used(int lane, long word, long now) {
        if (BlockWord.counts(word)) {
            model.used(kind(lane, word), now - BlockWord.stamp(word));
        }
        end(lane, word);
    }

    /// A block is used that is not resident.
    ///
    /// @return what was known of it, for [#usesOf] and [#labelOf]
    int returned(long fingerprint, long now) {
        long entry = departed.take(fingerprint);
        if (isTracked(entry)) {
            model.used(Departed.classOf(entry), now - Departed.lastUse(entry, now));
            forgotten(entry);
        }
        return entry == Departed.NONE ? UNKNOWN : Departed.classOf(entry);
    }

    /// What is known of a block that is not resident, or was not used since it came: for [#stepOf]
    /// and [#labelOf].
    int known(long fingerprint) {
        long entry = departed.find(fingerprint);
        return entry == Departed.NONE ? UNKNOWN : Departed.classOf(entry);
    }

    /// Whether anything is known of a block that is not resident.
    boolean remembers(long fingerprint) {
        return departed.find(fingerprint) != Departed.NONE;
    }

    /// Nothing is to be known of a block any more that is not resident, or was not used since it
    /// came.
    void forget(long fingerprint) {
        forgotten(departed.take(fingerprint));
    }

    /// A block, resident or not, is known to be used soon. To the model that is the use of one that is not
    /// resident, as it is of others.
    void announced(long fingerprint, long now) {
        int known = returned(fingerprint, now);
        if (known == UNKNOWN) {
            return;
        }
        int announced = known;
        if (known < ANNOUNCED) {
            int steps = BlockWord.usesOf(known % ReuseModel.CLASSES) - 1;
            announced = ANNOUNCED + labelOf(known) * BlockWord.MOST_USES + steps;
        }
        forgotten(departed.put(fingerprint, announced, now, now));
    }

    /// The step of use that a block has come to that has returned, with this use, 1 to
    /// [BlockWord#MOST_USES].
    static int usesOf(int returned, long now) {
        return returned == UNKNOWN ? 1 : BlockWord.more(stepOf(returned), now);
    }

    /// The step of use that a block had come to when it left; 1 when nothing is known of it.
    static int stepOf(int known) {
        if (known == UNKNOWN) {
            return 1;
        }
        return known < ANNOUNCED
                ? BlockWord.usesOf(known % ReuseModel.CLASSES)
                : 1 + (known - ANNOUNCED) % BlockWord.MOST_USES;
    }

    /// The label of a block that has returned.
    static int labelOf(int returned) {
        if (returned == UNKNOWN) {
            return 0;
        }
        return returned < ANNOUNCED ? returned / ReuseModel.CLASSES : (returned - ANNOUNCED) / BlockWord.MOST_USES;
    }

    /// A block with this word was evicted. Its weight is forgotten, its label is not.
    ///
    /// @param size resident blocks; the memory of those that are gone follows it, and is begun anew
    ///     when it grows
    void departs(long fingerprint, int lane, long word, int size) {
        if (BlockWord.standing(word) == BlockWord.AHEAD) {
            return; // what is remembered of it is as true as before it came
        }
        double wanted = Math.max(FEWEST_DEPARTED, rules.ghosts() * size);
        if (departed.capacity() < wanted) {
            departed.forEach(this::forgotten);
            departed = new Departed((long) wanted);
        }
        int kind = kind(lane, word);
        long lastUse = Departed.rounded(BlockWord.stamp(word));
        forgotten(departed.take(fingerprint));
        forgotten(departed.put(fingerprint, kind, lastUse, state.now()));
        end(lane, word);
        count(kind, lastUse, 1);
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
            remembered.age(buckets.row(span), AgeBins.of(buckets.age(span, now)), turnBegan);
        }
        turnBegan = now;
        buckets.cut(now);
        usesInLesson += usesInTurn;
        if (usesInLesson >= Math.max(SHORTEST_LESSON, size / LESSONS_IN_MEMORY)) {
            for (int span = 0; span < buckets.spans(); span++) {
                remembered.tell(buckets.row(span), now);
            }
            double halfLives = usesInLesson / (rules.halfLife() * Math.max(SHORTEST_LESSON, size));
            model.refresh(Math.pow(0.5, halfLives), AgeBins.of(buckets.age(0, now)));
            usesInLesson = 0;
        }
        usesInTurn = 0;
        turnLength = Math.max(SHORTEST_TURN, size / TURNS_IN_MEMORY);
    }

    /// Ranks all lists by what their leaves are worth, as [Ranks#byWorth] does.
    void rankByWorth(long now, double copyWorth) {
        ranks.byWorth(buckets, now, copyWorth);
    }

    /// Ranks all lists by last use alone.
    void rankByAge() {
        ranks.byAge(buckets);
    }

    /// What a resident block with this word is worth.
    ///
    /// @param byAge by its last use alone
    double worth(int lane, long word, long now, boolean byAge) {
        return switch (BlockWord.standing(word)) {
            case BlockWord.DEMOTED -> 0;
            case BlockWord.EXPECTED -> Ranks.EXEMPT;
            default -> {
                double worth = worth(kind(lane, word), now - BlockWord.stamp(word), byAge);
                yield byAge ? worth : lanes.weight(lane) * worth;
            }
        };
    }

    /// What a block is worth that is not resident, by what is remembered of it: 0 when nothing is.
    ///
    /// @param longest uses after which an announcement counts no more
    double worthOfDeparted(long fingerprint, long now, long longest, boolean byAge) {
        long entry = departed.find(fingerprint);
        if (entry == Departed.NONE) {
            return 0;
        }
        long age = now - Departed.lastUse(entry, now);
        if (isTracked(entry)) {
            return worth(Departed.classOf(entry), age, byAge);
        }
        return age <= longest ? Ranks.EXEMPT : 0;
    }

    private double worth(int kind, long age, boolean byAge) {
        return byAge ? 1.0 / (1 + age) : model.density(kind, AgeBins.of(age));
    }

    /// Bytes of what is learned and of the lists.
    long bytes() {
        return model.bytes() + ranks.bytes() + buckets.bytes() + remembered.bytes();
    }

    /// Bytes of the memory of evicted blocks.
    long departedBytes() {
        return departed.bytes();
    }

    /// Checks that all that is remembered is counted, and nothing else.
    void validate(Leaves leaves, int records) {
        Map<Integer, Integer> counts = new HashMap<>();
        for (int record = 0; record < records; record++) {
            long word = leaves.word(record);
            if (leaves.holds(record) && BlockWord.counts(word)) {
                counts.merge(place(kind(leaves.lane(record), word), BlockWord.stamp(word)), 1, Integer::sum);
            }
        }
        departed.forEach(entry -> {
            if (isTracked(entry)) {
                long lastUse = Departed.lastUse(entry, state.now());
                counts.merge(place(Departed.classOf(entry), lastUse), 1, Integer::sum);
            }
        });
        for (int span = 0; span < buckets.spans(); span++) {
            for (int kind = 0; kind < lanes.labels() * ReuseModel.CLASSES; kind++) {
                validate(counts.getOrDefault(buckets.row(span) * KINDS + kind, 0), kind, span);
            }
        }
    }

    private int place(int kind, long lastUse) {
        return buckets.rowOfUse(lastUse) * KINDS + kind;
    }

    private void validate(int found, int kind, int span) {
        int row = buckets.row(span);
        if (found != remembered.count(row, kind)) {
            throw new AssertionError("kind " + kind + ", span " + span + " remembers " + found + ", counted as "
                    + remembered.count(row, kind));
        }
        if (remembered.has(row, kind) != (found > 0)) {
            throw new AssertionError("kind " + kind + ", span " + span + " remembers other blocks than it says");
        }
    }

    private void forgotten(long entry) {
        if (isTracked(entry)) {
            count(Departed.classOf(entry), Departed.lastUse(entry, state.now()), -1);
        }
    }

    private static boolean isTracked(long entry) {
        return entry != Departed.NONE && Departed.classOf(entry) < ANNOUNCED;
    }

    private int kind(int lane, long word) {
        return lanes.label(lane) * ReuseModel.CLASSES + BlockWord.ownClass(word);
    }

    private void countResident(int lane, long word, int change) {
        if (BlockWord.counts(word)) {
            count(kind(lane, word), BlockWord.stamp(word), change);
        }
    }

    private void count(int kind, long lastUse, int change) {
        remembered.change(buckets.rowOfUse(lastUse), kind, change, turnBegan);
    }
}
