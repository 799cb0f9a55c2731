package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.SealOutcome;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Room that is kept for a client's bytes. The caller that takes it out of its session fills or closes it.
sealed interface UploadReservation {

    List<MemorySegment> pieces();

    /// Bytes that the checksum covers after those in the room.
    byte[] trailer();

    SealOutcome seal(int checksum);

    void close();

    /// For a block.
    record BlockReservation(BlockWriter writer) implements UploadReservation {

        private static final byte[] NOTHING = {};

        @Override
        public List<MemorySegment> pieces() {
            return List.of(writer.segment());
        }

        @Override
        public byte[] trailer() {
            return NOTHING;
        }

        @Override
        public SealOutcome seal(int checksum) {
            return writer.seal(checksum);
        }

        @Override
        public void close() {
            writer.close();
        }
    }

    /// For an object, whose key is summed with it.
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record ObjectReservation(ObjectWriter writer, byte[] trailer) implements UploadReservation {

        @Override
        public List<MemorySegment> pieces() {
            return writer.segments();
        }

        @Override
        public SealOutcome seal(int checksum) {
            return writer.seal(checksum);
        }

        @Override
        public void close() {
            writer.close();
        }
    }
}
