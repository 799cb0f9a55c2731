package io.kvcache.planner.baseline;

import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyContract;
import io.kvcache.core.policy.EvictionPolicyFactory;
import java.util.List;
import org.junit.jupiter.api.Tag;

/// Every policy on the class path keeps the contract.
@Tag("slow")
final class BaselineContractTest extends EvictionPolicyContract {

    @Override
    protected List<EvictionPolicyFactory> policies() {
        return EvictionPolicies.all();
    }
}
