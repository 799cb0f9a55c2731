package io.kvcache.server;

import io.kvcache.core.tier.TierState;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.PercentDecoder;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.movement.TierTransferStats;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// `/v1/disks`: lists the disks with their states, and reopens a failed one.
///
/// The store retries a failed disk after a pause that grows to ten minutes, and never one that cannot be written. An
/// operator that has mended a disk need not wait for that.
final class DiskEndpoint implements HttpEndpoint {

    private static final String DISKS_PATH = "/v1/disks";
    private static final String DISK_PREFIX = DISKS_PATH + "/";
    private static final String REOPEN_SUFFIX = "/reopen";

    private final TieredKvCache cache;

    DiskEndpoint(TieredKvCache cache) {
        this.cache = cache;
    }

    @Override
    public List<String> paths() {
        return List.of(DISKS_PATH, DISK_PREFIX + "{number or directory}" + REOPEN_SUFFIX);
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        if (path.equals(DISKS_PATH)) {
            return request.method().name().equals("GET")
                    ? (HttpRequestHandler.BodylessHandler)
                            out -> out.sendJson(HttpResponseStatus.OK, Map.of("disks", describeAll()))
                    : HttpResponder.methodNotAllowed(request, "GET");
        }
        if (!path.startsWith(DISK_PREFIX)
                || !path.endsWith(REOPEN_SUFFIX)
                || path.length() < DISK_PREFIX.length() + REOPEN_SUFFIX.length()) {
            return null;
        }
        String name =
                PercentDecoder.decode(path.substring(DISK_PREFIX.length(), path.length() - REOPEN_SUFFIX.length()));
        return request.method().name().equals("POST")
                ? (HttpRequestHandler.BodylessHandler) out -> reopen(name, out)
                : HttpResponder.methodNotAllowed(request, "POST");
    }

    private void reopen(@Nullable String name, HttpResponder out) {
        List<TierTransferStats> disks = cache.diskStats();
        int number = IntStream.range(0, disks.size())
                .filter(each -> Integer.toString(each).equals(name)
                        || disks.get(each).name().equals("disk " + name))
                .findFirst()
                .orElse(-1);
        if (number < 0) {
            out.sendProblem(
                    new ProblemDetails(HttpResponseStatus.NOT_FOUND, "there is no disk " + name + diskNames(disks)));
            return;
        }
        boolean serves = disks.get(number).state() == TierState.SERVING;
        if (!serves) {
            cache.reopenDisk(number);
        }
        out.sendJson(serves ? HttpResponseStatus.OK : HttpResponseStatus.ACCEPTED, describe(disks, number));
    }

    private static String diskNames(List<TierTransferStats> disks) {
        return disks.isEmpty() ? "; there are none" : "; there are 0 to " + (disks.size() - 1);
    }

    private List<Map<String, Object>> describeAll() {
        List<TierTransferStats> disks = cache.diskStats();
        return IntStream.range(0, disks.size())
                .mapToObj(number -> describe(disks, number))
                .toList();
    }

    private static Map<String, Object> describe(List<TierTransferStats> disks, int number) {
        TierTransferStats disk = disks.get(number);
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("number", number);
        all.put("name", disk.name());
        all.put("state", disk.state().name().toLowerCase(Locale.ROOT));
        all.put("cause", disk.cause());
        all.put("opened", disk.opened());
        return all;
    }
}
