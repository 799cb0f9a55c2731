package io.kvcache.gpu.engine;

import io.kvcache.gpu.paging.CopyThreshold;
import io.kvcache.gpu.paging.StagedCopier;
import org.jspecify.annotations.Nullable;

/// From where on a door copies pieces rather than have a kernel move them: measured with the first engine
/// that has small ones, as all have the same device.
///
/// **Threads.** Any; who comes while it is measured waits for that.
final class EngineCopyThreshold implements StagedCopier.ThresholdSource {

    private @Nullable CopyThreshold known;

    /// To be measured.
    EngineCopyThreshold() {}

    /// As somebody knows it.
    EngineCopyThreshold(CopyThreshold known) {
        this.known = known;
    }

    /// Whether a kernel may be better for pieces of this size, as far as is known.
    synchronized boolean canStage(long pieceBytes) {
        return known == null || pieceBytes < known.pieceBytes();
    }

    @Override
    public synchronized CopyThreshold thresholdFor(StagedCopier staged) {
        CopyThreshold present = known;
        if (present == null) {
            present = staged.measure(System::nanoTime);
            known = present;
        }
        return present;
    }
}
