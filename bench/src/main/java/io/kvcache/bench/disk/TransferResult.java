package io.kvcache.bench.disk;

/// What one trial moved, and at what price.
///
/// @param cpuSeconds user and system time of the threads that moved them
/// @param inFlight requests on their way, on average over the time; 0 where nobody counted
/// @param path how the bytes travelled, in the words of the device; empty for fio
public record TransferResult(long bytes, double seconds, double cpuSeconds, double inFlight, String path) {

    private static final double GIGABYTE = 1e9;

    public double gigabytesPerSecond() {
        return bytes / GIGABYTE / seconds;
    }

    public double cpuMillisPerGigabyte() {
        return cpuSeconds * 1e3 / (bytes / GIGABYTE);
    }
}
