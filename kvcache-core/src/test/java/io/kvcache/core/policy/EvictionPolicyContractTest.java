package io.kvcache.core.policy;

import java.util.List;

/// The policies that ship with the store keep the contract.
final class EvictionPolicyContractTest extends EvictionPolicyContract {

    @Override
    protected List<EvictionPolicyFactory> policies() {
        return List.of(PolicyKind.values());
    }
}
