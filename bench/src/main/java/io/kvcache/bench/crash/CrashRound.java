package io.kvcache.bench.crash;

/// What a round showed: a process was killed, and its directory opened again.
///
/// @param roomy whether the tier is large enough for everything
/// @param begun the last step that the process began
/// @param flushed its last flush, or -1
/// @param found over all rounds in the same directory
/// @param corrupt blocks and objects by `fsck`, before the opening
/// @param reopenSeconds until all that the disk holds was known again
public record CrashRound(
        int number,
        boolean roomy,
        int begun,
        int flushed,
        RecoveryVerifier.Findings found,
        long corrupt,
        double reopenSeconds) {

    /// Nothing wrong, nothing missing that has to be there, nothing bad on the disk.
    public boolean passed() {
        return found.wrong() == 0 && found.resurrected() == 0 && corrupt == 0 && (!roomy || found.missing() == 0);
    }

    /// Blocks and objects that were flushed and have to be there.
    public long promised() {
        return roomy ? found.promised() : 0;
    }

    public long missing() {
        return roomy ? found.missing() : 0;
    }

    public long wrong() {
        return found.wrong();
    }

    public long resurrected() {
        return found.resurrected();
    }
}
