package io.kvcache.server.config;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.LeafHeap;
import io.kvcache.core.policy.LeafLru;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;

/// LRU that takes two queues an instance: what a jar of an operator's could add to the server.
public final class TwoQueuePolicy implements EvictionPolicyFactory {

    @Override
    public String commandName() {
        return "two-queues";
    }

    @Override
    public int queueCount() {
        return 2;
    }

    @Override
    public EvictionPolicy create(RecordView records, PolicyState state) {
        var _ = new LeafHeap(records, state);
        return new LeafLru(records, state);
    }
}
