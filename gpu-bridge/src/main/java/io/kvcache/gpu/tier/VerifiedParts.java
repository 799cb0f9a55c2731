package io.kvcache.gpu.tier;

import io.kvcache.core.identity.BlockChain;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/// Leading blocks of a chain that lie on several parts of a device, each of which looks at its own:
/// what one part finds damaged ends the prefix, wherever the blocks behind it lie.
final class VerifiedParts {

    private VerifiedParts() {}

    /// Asks all parts at once.
    ///
    /// @return ends as the first part does that cannot look
    static CompletionStage<DeviceBlockTable> acquire(List<DeviceTier> parts, BlockChain chain, int from) {
        DeviceBlockTable all =
                DeviceIndex.acquire(parts.stream().map(DeviceTier::index).toList(), chain, from);
        List<CompletableFuture<DeviceBlockTable>> looks = new ArrayList<>();
        for (DeviceTier part : parts) {
            looks.add(part.verify(all.of(part.index())));
        }
        CompletableFuture<DeviceBlockTable> answer = new CompletableFuture<>();
        var _ = CompletableFuture.allOf(looks.toArray(CompletableFuture[]::new)).whenComplete((_, failed) -> {
            Set<DeviceEntry> good = take(looks);
            if (failed != null) {
                all.close();
                answer.completeExceptionally(failed.getCause() == null ? failed : failed.getCause());
                return;
            }
            all.shorten(leading(all, good));
            if (!answer.complete(all)) {
                all.close(); // nobody waits any more
            }
        });
        return answer;
    }

    /// What the parts found to be good; the whole table holds it as well.
    private static Set<DeviceEntry> take(List<CompletableFuture<DeviceBlockTable>> looks) {
        Set<DeviceEntry> good = new HashSet<>();
        for (CompletableFuture<DeviceBlockTable> look : looks) {
            if (!look.isCompletedExceptionally()) {
                DeviceBlockTable found = look.join();
                for (int i = 0; i < found.blocks(); i++) {
                    good.add(found.entry(i));
                }
                found.close();
            }
        }
        return good;
    }

    private static int leading(DeviceBlockTable all, Set<DeviceEntry> good) {
        int count = 0;
        while (count < all.blocks() && good.contains(all.entry(count))) {
            count++;
        }
        return count;
    }
}
