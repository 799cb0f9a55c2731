package io.kvcache.server.metrics;

import io.kvcache.server.zmq.ZmqPublisher;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/// Binds what is published over ZeroMQ.
///
/// | meter | tags | unit |
/// |---|---|---|
/// | `kv.events.published` | | messages |
/// | `kv.events.asked` | `kind` replay or snapshot | questions that were answered |
/// | `kv.events.overrun` | | times that events came faster than they could be published |
public final class ZmqPublisherMetrics implements MeterBinder {

    private final Supplier<@Nullable ZmqPublisher> publisher;

    /// @param publisher null in it before there is one
    public ZmqPublisherMetrics(Supplier<@Nullable ZmqPublisher> publisher) {
        this.publisher = publisher;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        count(registry, "kv.events.published", Tags.empty(), ZmqPublisher::publishedCount);
        count(registry, "kv.events.asked", Tags.of("kind", "replay"), ZmqPublisher::replayCount);
        count(registry, "kv.events.asked", Tags.of("kind", "snapshot"), ZmqPublisher::snapshotCount);
        count(registry, "kv.events.overrun", Tags.empty(), ZmqPublisher::overrunCount);
    }

    private void count(MeterRegistry registry, String name, Tags tags, ToLongFunction<ZmqPublisher> of) {
        FunctionCounter.builder(name, publisher, from -> {
                    ZmqPublisher now = from.get();
                    return now == null ? 0 : of.applyAsLong(now);
                })
                .tags(tags)
                .register(registry);
    }
}
