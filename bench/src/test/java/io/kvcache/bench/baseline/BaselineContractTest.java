package io.kvcache.bench.baseline;

import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyContract;
import io.kvcache.core.policy.EvictionPolicyFactory;
import java.util.List;

/// Every policy on the class path keeps the contract.
final class BaselineContractTest extends EvictionPolicyContract {

    @Override
    protected List<EvictionPolicyFactory> policies() {
        return EvictionPolicies.all();
    }
}
