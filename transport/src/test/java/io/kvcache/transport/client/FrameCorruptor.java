package io.kvcache.transport.client;

import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Status;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.SplittableRandom;

/// Puts something else in the place of some frames: the same with bits turned, bytes lost or others than they
/// were, twice, with news that nobody asked for, or what is no frame at all.
///
/// Behind a spoilt frame the connection breaks, so that nobody waits in vain for what it has made expected; but
/// a few times, to see that the client gives up.
final class FrameCorruptor implements InProcessServer.FrameMutator {

    /// Of the connection that carries many requests fewer are spoilt: with it the session ends.
    private static final int OF_CONTROL = 40;

    private static final int OF_DATA = 2;
    private static final int THAT_STAY_OPEN = 5000;

    private final SplittableRandom random;
    private int count;

    FrameCorruptor(SplittableRandom random) {
        this.random = random;
    }

    /// How many were spoilt.
    synchronized int count() {
        return count;
    }

    @Override
    public synchronized InProcessServer.MutatedFrame mutate(int wire, byte[] frame) {
        if (random.nextInt(wire == 0 ? OF_CONTROL : OF_DATA) > 0) {
            return new InProcessServer.MutatedFrame(frame, false);
        }
        count++;
        boolean last = random.nextInt(THAT_STAY_OPEN) > 0;
        return switch (random.nextInt(9)) {
            case 0, 1 -> new InProcessServer.MutatedFrame(turned(frame, frame.length), last);
            case 2 -> new InProcessServer.MutatedFrame(turned(frame, Math.min(frame.length, 80)), last);
            case 3 -> new InProcessServer.MutatedFrame(otherBody(frame), last);
            case 4 -> new InProcessServer.MutatedFrame(otherSize(frame), last);
            case 5 -> new InProcessServer.MutatedFrame(otherType(frame), last);
            case 6 -> new InProcessServer.MutatedFrame(Arrays.copyOf(frame, 1 + random.nextInt(frame.length)), true);
            case 7 -> new InProcessServer.MutatedFrame(garbage(), true);
            default -> new InProcessServer.MutatedFrame(more(frame), false);
        };
    }

    private byte[] turned(byte[] frame, int within) {
        byte[] changed = frame.clone();
        changed[random.nextInt(within)] ^= (byte) (1 << random.nextInt(8));
        return changed;
    }

    private byte[] otherBody(byte[] frame) {
        byte[] changed = frame.clone();
        for (int i = FrameHeader.BYTES; i < Math.min(changed.length, 2 * FrameHeader.BYTES); i++) {
            if (random.nextInt(3) == 0) {
                changed[i] = (byte) (random.nextBoolean() ? random.nextInt() : -random.nextInt(2));
            }
        }
        return changed;
    }

    private byte[] otherSize(byte[] frame) {
        byte[] changed = frame.clone();
        int size = random.nextInt(3) == 0 ? random.nextInt() : random.nextInt(2 * frame.length);
        ByteBuffer.wrap(changed).order(ByteOrder.LITTLE_ENDIAN).putInt(random.nextBoolean() ? 16 : 20, size);
        return changed;
    }

    private byte[] otherType(byte[] frame) {
        byte[] changed = frame.clone();
        changed[4] = (byte) random.nextInt(60);
        return changed;
    }

    private byte[] garbage() {
        byte[] garbage = new byte[1 + random.nextInt(200)];
        random.nextBytes(garbage);
        return garbage;
    }

    /// The frame, and one that nobody waits for.
    private byte[] more(byte[] frame) {
        byte[] other = switch (random.nextInt(4)) {
            case 0 -> frame;
            case 1 -> RecordingSink.bytes(BodyWriter.errorReply(0, 0, Status.INVALID, "something; allowed: else"));
            default ->
                RecordingSink.bytes(new BodyWriter()
                        .i64(random.nextInt(8))
                        .i32(random.nextInt(10) - 1)
                        .i32(random.nextInt(10) - 1)
                        .request(MessageType.PROGRESS, 0, 0));
        };
        byte[] both = Arrays.copyOf(frame, frame.length + other.length);
        System.arraycopy(other, 0, both, frame.length, other.length);
        return both;
    }
}
