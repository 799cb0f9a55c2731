package io.kvcache.bench.transport;

import java.io.IOException;

/// Who moves blocks between this process and the server's.
interface TransferClient extends AutoCloseable {

    /// Moves one block there or here.
    ///
    /// @param number of the move, counted over all threads
    /// @return whether it was moved, whole
    boolean transfer(TransferSpec transferSpec, long number) throws IOException, InterruptedException;

    /// What comes before each move and is not counted.
    default void beforeTransfer() {}

    @Override
    void close() throws IOException;
}
