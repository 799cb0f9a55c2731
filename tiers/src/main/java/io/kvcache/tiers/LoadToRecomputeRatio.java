package io.kvcache.tiers;

/// What reading blocks from disk takes as a share of what computing them does, over the last
/// requests.
///
/// The policy of host memory weighs every block that has a copy by it, so one request that came
/// while the disk was busy must not move it far. Times are added up before they are divided:
/// requests count by what they load, and older ones for less and less.
///
/// **Threads.** Any.
final class LoadToRecomputeRatio {

    /// A copy saves nothing less, however fast the disk: it may be gone first.
    private static final double MIN_RATIO = 0.05;

    /// What is kept of all before at each request: the last 32 count for two thirds.
    private static final double DECAY = 1 - 1.0 / 32;

    private double loadNanosSum;
    private double computeNanosSum;

    /// A request found blocks on disk.
    ///
    /// @param loadNanos that reading them takes, 0 and up
    /// @param computeNanos that computing them takes, above 0
    /// @return the share by now, from a twentieth to 1
    synchronized double record(double loadNanos, double computeNanos) {
        loadNanosSum = DECAY * loadNanosSum + loadNanos;
        computeNanosSum = DECAY * computeNanosSum + computeNanos;
        return Math.clamp(loadNanosSum / computeNanosSum, MIN_RATIO, 1);
    }
}
