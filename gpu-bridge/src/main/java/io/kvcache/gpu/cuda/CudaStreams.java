package io.kvcache.gpu.cuda;

import io.kvcache.gpu.cuda.CudaEvent.CudaEventHandle;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.JCudaDriver;

/// The streams of a driver, and what those still do that are closed: they go on with what they have and
/// cannot be asked any more, so a mark is left behind that, which can.
///
/// Owned by the driver's thread.
final class CudaStreams {

    /// Taking memory away waits for what is on its way; longer than this is a hang.
    private static final long MAX_DRAIN_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final CudaDriver driver;
    private final Set<CudaStream> open = new HashSet<>();
    private final List<CudaEventHandle> closeMarks = new ArrayList<>();
    private boolean hung;

    CudaStreams(CudaDriver driver) {
        this.driver = driver;
    }

    int count() {
        return open.size();
    }

    void add(CudaStream stream) {
        open.add(stream);
    }

    /// Leaves a mark behind what it does; where there is none to be had, that is waited for now.
    void onStreamClosing(CudaStream stream) {
        open.remove(stream);
        try {
            driver.enter();
            if (!isFinished(stream) && !leaveMark(stream)) {
                await(stream::queryIdle);
            }
        } catch (DeviceException refused) {
            driver.markFailed("a closed stream is not waited for", refused);
        }
    }

    private boolean isFinished(CudaStream stream) {
        try {
            return closedStreamsFinished() && stream.queryIdle();
        } catch (DeviceException gone) {
            return false; // as it says; to be asked once more
        }
    }

    private boolean leaveMark(CudaStream stream) {
        CUevent event = new CUevent();
        if (JCudaDriver.cuEventCreate(event, CUevent_flags.CU_EVENT_DISABLE_TIMING) != CudaResult.SUCCESS) {
            return false;
        }
        CudaEventHandle mark = new CudaEventHandle.JcudaEvent(event);
        if (stream.recordMark(mark) != CudaResult.SUCCESS) {
            driver.releaseQuietly("cuEventDestroy", mark::destroy);
            return false;
        }
        closeMarks.add(mark);
        return true;
    }

    /// Returns whether closed streams have finished their work.
    private boolean closedStreamsFinished() {
        while (!closeMarks.isEmpty()) {
            CudaEventHandle mark = closeMarks.getLast();
            if (!driver.isComplete("cuEventQuery", mark.query())) {
                return false;
            }
            closeMarks.removeLast();
            driver.releaseQuietly("cuEventDestroy", mark::destroy);
        }
        return true;
    }

    /// Waits for all that streams were given, also those that are closed: the driver's own wait has no end
    /// where there is one, and there is none before memory is unmapped.
    ///
    /// @throws DeviceException when it does not end
    void drain() {
        await(() -> open.stream().allMatch(CudaStream::queryIdle) && closedStreamsFinished());
    }

    /// Until it is so. A device that is said to be gone is asked all the same, and one that says so
    /// is asked once more: an answer may be about something else, and while copies are made their
    /// memory must stay.
    private void await(BooleanSupplier done) {
        long since = System.nanoTime();
        boolean wasLost = driver.isLost();
        boolean askedAgain = wasLost;
        while (!hung) {
            try {
                if (done.getAsBoolean()) {
                    return;
                }
            } catch (DeviceException gone) {
                if (askedAgain && wasLost) {
                    return;
                }
                if (askedAgain) {
                    throw gone;
                }
                askedAgain = true;
                continue;
            }
            requireWithinTimeout(since);
            LockSupport.parkNanos(this, DeviceEvent.POLL_NANOS);
        }
    }

    private void requireWithinTimeout(long since) {
        if (System.nanoTime() - since > MAX_DRAIN_NANOS) {
            hung = true;
            DeviceException endless =
                    new DeviceException(DeviceError.DEVICE_LOST, "drain", "what is on its way does not end");
            driver.markFailed("not waited for any longer", endless);
            throw endless;
        }
    }

    /// Waits for what is on its way, and closes all.
    void closeAll() {
        try {
            driver.enter();
            drain();
        } catch (DeviceException refused) {
            driver.markFailed("closed with what is on its way", refused);
        }
        List.copyOf(open).forEach(CudaStream::close);
        closeMarks.forEach(mark -> driver.releaseQuietly("cuEventDestroy", mark::destroy));
        closeMarks.clear();
    }
}
