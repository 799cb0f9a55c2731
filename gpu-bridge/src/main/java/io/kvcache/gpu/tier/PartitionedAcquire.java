package io.kvcache.gpu.tier;

import io.kvcache.core.identity.BlockChain;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/// Leading blocks of a chain that lie on several parts of a device, each of which looks at its own:
/// what one part finds damaged ends the prefix, wherever the blocks behind it lie.
final class PartitionedAcquire {

    private PartitionedAcquire() {}

    /// Asks all parts at once.
    ///
    /// @return ends as the first part does that cannot look
    static CompletionStage<DeviceBlockTable> acquire(List<DeviceTier> parts, BlockChain chain, int from) {
        DeviceBlockTable all =
                DeviceIndex.acquire(parts.stream().map(DeviceTier::index).toList(), chain, from);
        List<CompletableFuture<DeviceBlockTable>> looks = new ArrayList<>();
        for (DeviceTier part : parts) {
            DeviceBlockTable own = all.entriesOf(part.index());
            List<DeviceEntry> asked = own.entries();
            looks.add(part.verify(own).whenComplete((found, _) -> end(all, asked, found)));
        }
        CompletableFuture<DeviceBlockTable> answer = new CompletableFuture<>();
        var _ = CompletableFuture.allOf(looks.toArray(CompletableFuture[]::new)).whenComplete((_, failed) -> {
            if (failed != null) {
                all.close();
                answer.completeExceptionally(failed.getCause() == null ? failed : failed.getCause());
            } else if (!answer.complete(all)) {
                all.close(); // nobody waits any more
            }
        });
        return answer;
    }

    /// A part has looked: what is behind the first that it did not find good is not the answer, whatever
    /// others find, and is held no longer. So a part that closes waits for none of the others.
    ///
    /// @param asked of this part, in the chain's order
    /// @param found as many of these as are good, or null when it could not look
    private static void end(DeviceBlockTable all, List<DeviceEntry> asked, @Nullable DeviceBlockTable found) {
        int good = found == null ? 0 : found.blocks();
        if (good < asked.size()) {
            all.truncateBefore(asked.get(good));
        }
        if (found != null) {
            found.close();
        }
    }
}
