package io.kvcache.server.net;

import io.netty.handler.ipfilter.IpFilterRuleType;
import io.netty.handler.ipfilter.IpSubnetFilterRule;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;

/// The networks that clients may be in.
public final class CidrAllowList {

    /// Any.
    public static final CidrAllowList ALL = new CidrAllowList(List.of());

    private final List<IpSubnetFilterRule> rules;

    /// @param cidrs as `10.0.0.0/8`; empty for any
    public CidrAllowList(List<String> cidrs) {
        rules = cidrs.stream()
                .map(each -> each.split("/", 2))
                .map(parts -> new IpSubnetFilterRule(parts[0], Integer.parseInt(parts[1]), IpFilterRuleType.ACCEPT))
                .toList();
    }

    /// Whether a client may connect. One whose address is not known may not, unless all may.
    boolean allows(SocketAddress client) {
        return rules.isEmpty()
                || (client instanceof InetSocketAddress inet && rules.stream().anyMatch(rule -> rule.matches(inet)));
    }
}
