package io.kvcache.gpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.ResourceCounts;
import io.kvcache.gpu.driver.DeviceException;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.logging.Level;
import java.util.logging.Logger;

/// Does a piece of work over and over, and has one call of the driver fail each time: an early one,
/// a later one, and so on, until all succeed. Another driver keeps the context meanwhile, so that
/// nothing goes by itself.
public final class FaultInjection {

    /// By day every second call fails, with the first or the second to begin with; by night each of them.
    public static final int STRIDE = Repetitions.usualOrFull(2, 1);

    private static final int MAX_CALLS = 20_000;

    /// Calls that give something back, and how much stays when one fails: until the context goes,
    /// as nobody knows what a second try would do. A mapping keeps its range.
    private static final Map<String, Integer> GIVING_BACK = Map.of(
            "cuMemFree_v2", 1,
            "cuMemHostUnregister", 1,
            "cuStreamDestroy_v2", 1,
            "cuEventDestroy_v2", 1,
            "cuModuleUnload", 1,
            "cuMemUnmap", 2,
            "cuMemRelease", 1,
            "cuMemAddressFree", 1,
            "cuIpcCloseMemHandle", 1);

    private final FakeCuda fakeCuda;
    private int faults;
    private int done;
    private long kept;

    /// What is done each time; it looks itself whether the bytes are right.
    public interface FaultedWork {

        /// Does the work; what it took, it gives back, whatever fails.
        ///
        /// @param nth the call that fails
        /// @param begin to be called where calls begin to count
        /// @return whether all of it was done
        boolean attempt(int nth, Runnable begin) throws Exception;
    }

    /// What is done each time with a driver that lives on afterwards, as those of tiers and doors do.
    public interface FaultedDriverWork {

        /// Does the work; what it took of the driver, it gives back, whatever fails.
        ///
        /// @param faultRun to be told when the work begins
        /// @return whether all of it was done
        boolean attempt(DeviceDriver driver, FaultRun faultRun) throws Exception;
    }

    /// One time that the work is done.
    public static final class FaultRun {

        private final FakeCuda fakeCuda;
        private final int nth;
        private final int code;
        private boolean withTheDriver;

        FaultRun(FakeCuda fakeCuda, int nth, int code) {
            this.fakeCuda = fakeCuda;
            this.nth = nth;
            this.code = code;
        }

        /// The call that fails.
        public int failingCall() {
            return nth;
        }

        /// Calls count from here on.
        public void begin() {
            fakeCuda.failCall("", nth, code);
        }

        /// The device is of no use any more: what is left goes with the driver.
        public void expectFatal(DeviceException refused) {
            withTheDriver |= refused.error().isFatal();
        }
    }

    private FaultInjection(FakeCuda fakeCuda) {
        this.fakeCuda = fakeCuda;
    }

    /// Returns the first call that fails; the next is [#STRIDE] later. Drawn anew each time, so that days cover all.
    public static int firstCall() {
        return ThreadLocalRandom.current().nextInt(1, STRIDE + 1);
    }

    /// Has each call fail once with this answer; by day every second one.
    ///
    /// @param minCalls calls that the work has to make
    public static void inject(FakeCuda fakeCuda, String what, int code, int minCalls, FaultedWork work)
            throws Exception {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose calls can be made to fail")
                .isTrue();
        Logger log = Logger.getLogger("io.kvcache.gpu");
        log.setLevel(Level.OFF);
        DeviceDriver keeper = fakeCuda.open();
        try {
            FaultInjection turns = new FaultInjection(fakeCuda);
            turns.run(code, work);
            System.out.printf(
                    "%s faults injected: %d calls answered %d, %d of them had no consequence, %d things stayed%n",
                    what, turns.faults, code, turns.done, turns.kept);
            assertThat(turns.faults * STRIDE).isGreaterThan(minCalls);
        } finally {
            fakeCuda.failCall("", 0, 0);
            keeper.close();
            log.setLevel(null);
        }
    }

    /// The same within a driver that is open before and after: what the work does not give back is counted
    /// while it is.
    ///
    /// @param minCalls calls that the work has to make
    public static void injectWithin(FakeCuda fakeCuda, String what, int code, int minCalls, FaultedDriverWork work)
            throws Exception {
        int[] ended = new int[1];
        inject(fakeCuda, what, code, minCalls, (nth, _) -> {
            DeviceDriver driver = fakeCuda.open();
            try {
                FaultRun faultRun = new FaultRun(fakeCuda, nth, code);
                long before = fakeCuda.resourceCount();
                long faults = fakeCuda.injected();
                boolean all = work.attempt(driver, faultRun);
                fakeCuda.failCall("", 0, 0);
                String failed = fakeCuda.injected() > faults ? fakeCuda.injectedAt() : "none";
                settle(driver);
                ended[0] += faultRun.withTheDriver ? 1 : 0;
                if (!faultRun.withTheDriver) {
                    assertThat(fakeCuda.resourceCount() - before)
                            .as("left in a driver that lives on, after call %d failed, %s, %s", nth, failed, all)
                            .isBetween(0L, (long) GIVING_BACK.getOrDefault(failed, 0));
                    assertThat(driver.resourceCounts())
                            .as("left in a driver that lives on")
                            .isEqualTo(ResourceCounts.NONE);
                }
                return all;
            } finally {
                fakeCuda.failCall("", 0, 0);
                close(driver);
            }
        });
        System.out.printf("%s: %d times the device was of no use, and what was left went with it%n", what, ended[0]);
    }

    /// What closed streams leave behind, the driver gives back when it waits for all they had.
    private static void settle(DeviceDriver driver) {
        try {
            driver.free(driver.allocate(1));
        } catch (DeviceException refused) {
            assertThat(refused.error().isFatal()).isTrue();
        }
    }

    /// Skips the test where the driver's calls cannot be made to fail.
    public static void assumePossible(FakeCuda fakeCuda) {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose calls can be made to fail")
                .isTrue();
    }

    private void run(int code, FaultedWork work) throws Exception {
        for (int nth = firstCall(); nth < MAX_CALLS; nth += STRIDE) {
            long things = fakeCuda.resourceCount();
            String contexts = contexts();
            long before = fakeCuda.injected();
            int call = nth;
            boolean all = work.attempt(nth, () -> fakeCuda.failCall("", call, code));
            fakeCuda.failCall("", 0, 0);
            boolean injected = fakeCuda.injected() > before;
            String failed = injected ? fakeCuda.injectedAt() : "none";
            long mayStay = GIVING_BACK.getOrDefault(failed, 0);
            long stayed = fakeCuda.resourceCount() - things;
            assertThat(stayed).as("left after call %d failed, %s", nth, failed).isBetween(0L, mayStay);
            assertThat(contexts())
                    .as("contexts after call %d failed, %s", nth, failed)
                    .isEqualTo(contexts);
            kept += stayed;
            if (!injected) {
                assertThat(all).as("without a fault all is well").isTrue();
                return;
            }
            faults++;
            done += all ? 1 : 0;
        }
        throw new AssertionError("more than " + MAX_CALLS + " calls");
    }

    private String contexts() {
        return fakeCuda.left().replaceFirst(".* and ", "");
    }

    /// Closes a driver that may have been left with something.
    public static void close(DeviceDriver driver) {
        try {
            driver.close();
        } catch (IllegalStateException left) {
            assertThat(left).hasMessageContaining("before all was given back");
        }
    }
}
