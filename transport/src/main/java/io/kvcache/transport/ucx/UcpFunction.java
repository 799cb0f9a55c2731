package io.kvcache.transport.ucx;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import org.jspecify.annotations.Nullable;

/// The functions of libucp that are called, with their signatures on 64-bit Linux. A request is declared to be
/// a number, not a pointer: small negative ones are failures then, as every other status is.
@SuppressWarnings("ImmutableEnumChecker") // Function descriptors are immutable, though not annotated so.
enum UcpFunction {
    CONFIG_READ(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
    CONFIG_MODIFY(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
    CONFIG_RELEASE(null, ADDRESS),
    INIT_VERSION(JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
    CLEANUP(null, ADDRESS),
    WORKER_CREATE(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
    WORKER_DESTROY(null, ADDRESS),
    WORKER_GET_ADDRESS(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
    WORKER_RELEASE_ADDRESS(null, ADDRESS, ADDRESS),
    WORKER_PROGRESS(JAVA_INT, ADDRESS),
    WORKER_WAIT(JAVA_INT, ADDRESS),
    WORKER_SIGNAL(JAVA_INT, ADDRESS),
    MEM_MAP(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
    MEM_UNMAP(JAVA_INT, ADDRESS, ADDRESS),
    RKEY_PACK(JAVA_INT, ADDRESS, ADDRESS, ADDRESS, ADDRESS),
    RKEY_BUFFER_RELEASE(null, ADDRESS),
    EP_CREATE(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
    EP_RKEY_UNPACK(JAVA_INT, ADDRESS, ADDRESS, ADDRESS),
    RKEY_DESTROY(null, ADDRESS),
    EP_CLOSE_NBX(JAVA_LONG, ADDRESS, ADDRESS),
    GET_NBX(JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS),
    REQUEST_CHECK_STATUS(JAVA_INT, JAVA_LONG),
    REQUEST_FREE(null, JAVA_LONG);

    private final FunctionDescriptor descriptor;

    UcpFunction(@Nullable MemoryLayout result, MemoryLayout... arguments) {
        descriptor = result == null ? FunctionDescriptor.ofVoid(arguments) : FunctionDescriptor.of(result, arguments);
    }

    String symbol() {
        return "ucp_" + name().toLowerCase(java.util.Locale.ROOT);
    }

    FunctionDescriptor descriptor() {
        return descriptor;
    }
}
