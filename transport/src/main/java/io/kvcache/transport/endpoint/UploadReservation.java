package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.OutcomeCodec;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Function;

/// Room that is kept for a client's bytes. Whoever takes it out of its session fills or closes it.
sealed interface UploadReservation {

    /// The room.
    List<MemorySegment> pieces();

    /// What is summed after the bytes.
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

    /// What becomes of bytes that lie in their room, however they came there: those that have the checksum that
    /// the client has told are sealed, others thrown away.
    record UploadCompletion(EndpointContext endpointContext) {

        /// What the client says of bytes, and how it is answered.
        record ExpectedUpload(int checksum, Function<SealOutcome, BodyWriter> answer) {}

        /// The answer to a request that fills room it had.
        static ExpectedUpload forFill(int checksum) {
            return new ExpectedUpload(checksum, outcome -> new BodyWriter().u8(OutcomeCodec.code(outcome)));
        }

        /// The answer to a request that reserves and fills.
        static ExpectedUpload forPut(int checksum) {
            return new ExpectedUpload(checksum, outcome -> putReply(PutOutcome.RESERVED, OutcomeCodec.code(outcome)));
        }

        /// The answer to one that found no room to fill.
        static BodyWriter rejectedPutReply(PutOutcome outcome) {
            return putReply(outcome, 0);
        }

        private static BodyWriter putReply(PutOutcome outcome, int sealed) {
            return new BodyWriter()
                    .u8(OutcomeCodec.code(outcome))
                    .u8(sealed)
                    .u8(OutcomeCodec.cause(outcome))
                    .u8(0)
                    .i32(0);
        }

        /// Ends a put.
        ///
        /// @param sum of the bytes in the room
        void seal(
                EndpointRequest request, UploadReservation reservation, ChunkedCrc sum, ExpectedUpload expectedUpload) {
            byte[] trailer = reservation.trailer();
            if (trailer.length > 0) {
                sum.update(MemorySegment.ofArray(trailer));
            }
            int found = sum.value();
            if (found != expectedUpload.checksum) {
                endpointContext.counters().corrupt.increment();
                reservation.close();
                request.reject(
                        Status.CORRUPT, "checksum 0x%08x; told was 0x%08x".formatted(found, expectedUpload.checksum));
                return;
            }
            endpointContext.runOrReject(request, () -> {
                SealOutcome outcome = reservation.seal(found);
                request.reply(expectedUpload.answer.apply(outcome));
            });
        }
    }
}
