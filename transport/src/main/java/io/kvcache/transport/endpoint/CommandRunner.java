package io.kvcache.transport.endpoint;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Runs requests of other protocols that another server of the cluster passes on for its clients.
///
/// **Threads.** Any.
public interface CommandRunner {

    /// Takes room for a request.
    ///
    /// @param tenant for whose client it is
    /// @param dialect number of its protocol, of which both sides know the meaning
    /// @param bytes of the request, 1 and up
    /// @return null when as much is in progress as may be
    /// @throws IllegalArgumentException for a tenant or a dialect that there is not
    @Nullable
    Command begin(String tenant, int dialect, int bytes);

    /// One request.
    ///
    /// **Ownership.** Its memory and that of its reply are good until it is closed.
    interface Command extends AutoCloseable {

        /// The native memory that the request is read into.
        MemorySegment request();

        /// Runs the request, and waits for its whole reply.
        ///
        /// @return the bytes of the reply, in native memory
        /// @throws IOException when no reply has come in time, or none will come
        List<MemorySegment> run(Duration timeout) throws IOException;

        @Override
        void close();
    }
}
