package io.kvcache.bench.lab;

/// How full a tier was: the mean, over the requests, of the share that was taken when one had been
/// served.
final class Occupancy {

    private double sum;
    private long requests;

    /// A request has been served.
    void add(long taken, long capacity) {
        sum += capacity == 0 ? 0 : (double) taken / (double) capacity;
        requests++;
    }

    /// The mean, 0 when nothing was served.
    double mean() {
        return requests == 0 ? 0 : sum / requests;
    }
}
