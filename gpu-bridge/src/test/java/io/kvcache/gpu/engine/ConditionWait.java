package io.kvcache.gpu.engine;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/// Waits for what another thread does.
final class ConditionWait {

    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(60);

    private ConditionWait() {}

    static void awaitTrue(BooleanSupplier so) {
        long since = System.nanoTime();
        while (!so.getAsBoolean()) {
            assertThat(System.nanoTime() - since).as("nanoseconds").isLessThan(LONG_NANOS);
            Pause.briefly();
        }
    }
}
