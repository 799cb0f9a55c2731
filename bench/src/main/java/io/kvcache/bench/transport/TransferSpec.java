package io.kvcache.bench.transport;

/// The blocks to move.
///
/// @param operation there or here, and how
/// @param bytes of a block
/// @param inFlight threads that each do one operation at a time
public record TransferSpec(TransferOperation operation, int bytes, int inFlight) {

    /// Bytes of one move.
    long transferBytes() {
        return (long) operation.blockCount() * bytes;
    }

    /// The operation on one block or several.
    public enum TransferOperation {
        /// Get it here.
        ACQUIRE("acquire", 1),
        /// Reserve room, then fill it: two round trips.
        PUT("put", 1),
        /// Reserve and fill in one round trip.
        STORE("store", 1),
        /// Store a run of blocks, several on their way at a time. The bare responder gets one after the other.
        STORE_RUN("store 8", 8);

        private final String text;
        private final int blocks;

        TransferOperation(String text, int blocks) {
            this.text = text;
            this.blocks = blocks;
        }

        /// As it is shown.
        public String label() {
            return text;
        }

        /// Blocks of one move.
        int blockCount() {
            return blocks;
        }

        /// Returns whether bytes go to the server.
        boolean isPut() {
            return this != ACQUIRE;
        }
    }
}
