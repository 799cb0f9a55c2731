package io.kvcache.bench.constant;

import static io.kvcache.bench.constant.TunableConstant.field;
import static io.kvcache.bench.constant.TunableConstant.rule;

import io.kvcache.bench.constant.TunableConstant.Effect;
import java.util.List;

/// All numbers of importance and of admission by value that could have been others. Numbers that
/// follow from a layout (bits of a word, ways of a set) or from another number are not among them.
public final class TunableConstants {

    private static final String ORDER_OF_MAGNITUDE = "order of magnitude";
    private static final String ROUND_NUMBER = "a round number; why was not written down";

    private static final List<TunableConstant> ALL = List.of(
            rule(0, "halfLife", ORDER_OF_MAGNITUDE + ", many turns of memory"),
            rule(1, "ghosts", ORDER_OF_MAGNITUDE + ", a few turns of memory"),
            rule(2, "priorRate", ORDER_OF_MAGNITUDE + ", of the law that makes LRU right"),
            rule(3, "priorEvents", ORDER_OF_MAGNITUDE + ", a handful of uses"),
            rule(4, "groupEvents", ORDER_OF_MAGNITUDE + ", ten times as many"),
            rule(5, "classEvents", "fitted: 300 to 8,000 on both traces"),
            field(
                    "policy/NoveltyClass",
                    "FIRST_TOKENS",
                    Effect.ORDER,
                    "fitted: seven ways to cut on both traces and generated ones"),
            field("policy/NoveltyClass", "STEP_BITS", Effect.ORDER, "powers of four, as there are five steps"),
            field("policy/NoveltyClass", "DEFAULT_TOKENS", Effect.ORDER, "LMCache's chunk"),
            field(
                    "policy/ReuseModel",
                    "REACH",
                    Effect.ORDER,
                    "fitted: 0, 1, 2, 4 and 6 on both traces and generated:1"),
            field("policy/AgeBuckets", "DISTANCE", Effect.ORDER, "about eight lists a doubling of age"),
            field("policy/ReuseTracker", "MIN_GHOSTS", Effect.ORDER, "64 KiB, so that small stores learn too"),
            field(
                    "policy/ReuseTracker",
                    "MIN_EPOCH",
                    Effect.ORDER,
                    "fitted: 8 to 64 on generated:1 and 3; bounds what turns cost"),
            field(
                    "policy/ReuseTracker",
                    "EPOCHS_PER_TURNOVER",
                    Effect.ORDER,
                    ROUND_NUMBER + "; bounds what turns cost"),
            field("policy/ReuseTracker", "MIN_REFRESH", Effect.ORDER, ROUND_NUMBER + "; bounds what lessons cost"),
            field(
                    "policy/ReuseTracker",
                    "REFRESHES_PER_TURNOVER",
                    Effect.ORDER,
                    ROUND_NUMBER + "; bounds what lessons cost"),
            field("policy/ScanResistantClock", "MEMORY", Effect.ORDER, ROUND_NUMBER),
            field("policy/ScanResistantClock", "AHEAD", Effect.ORDER, "a burst of long prompts is no scan"),
            field("policy/ScanResistantClock", "MIN_USES", Effect.ORDER, ROUND_NUMBER),
            field("policy/LruFallback", "MAX_LOSS", Effect.ORDER, "half of the half point that may be lost"),
            field("policy/LruFallback", "CHANCE", Effect.ORDER, "three standard deviations, by convention"),
            field("policy/LruFallback", "MAX_RUN", Effect.ORDER, ROUND_NUMBER),
            field("policy/LruFallback", "PARTS", Effect.ORDER, ROUND_NUMBER),
            field("policy/LruFallback", "MIN_PART", Effect.ORDER, ROUND_NUMBER),
            field("policy/LruFallback", "MAX_PATIENCE", Effect.ORDER, ROUND_NUMBER),
            field("policy/ShadowLru", "MAX_SAMPLE", Effect.ORDER, "224 KiB for a class of slots"),
            field("policy/AnnouncedRequests", "MIN_HORIZON", Effect.QUEUE, ROUND_NUMBER),
            field("policy/AnnouncedRequests", "HORIZON_IN_MEMORY", Effect.QUEUE, ROUND_NUMBER),
            field(
                    "store/AdmissionThreshold",
                    "WINDOW",
                    Effect.WRITING,
                    "a model of both traces: a fourth and four times"),
            field(
                    "store/AdmissionThreshold",
                    "STEP",
                    Effect.WRITING,
                    "a model of both traces: a fourth and four times"),
            field(
                    "store/AdmissionThreshold",
                    "MAX_THRESHOLD",
                    Effect.WRITING,
                    "above what blocks of usual prompts promise"),
            field("store/ReuseProbability", "WINDOW", Effect.WRITING, ROUND_NUMBER),
            field("store/ReuseProbability", "PRIOR_BLOCKS", Effect.WRITING, "a few imagined blocks"),
            field("store/ReuseProbability", "PRIOR_AGAIN", Effect.WRITING, "fitted: two in five, as in conversation"),
            field("store/RecomputeCost", "DOUBLING_TOKENS", Effect.WRITING, "computed, of Llama 3 8B"),
            field("store/RecomputeCost", "MEAN_OF", Effect.WRITING, ROUND_NUMBER),
            field("tier/AdmissionKind", "DEFAULT_GAIN", Effect.WRITING, "computed, of prices of a GPU and a drive"),
            field("tier/AdmissionKind", "WRITTEN_SHARE", Effect.WRITING, "asked for: 40 % of write-through"));

    private TunableConstants() {}

    /// All of them, in the order of their files.
    public static List<TunableConstant> all() {
        return ALL;
    }
}
