package io.kvcache.transport.sim;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;

/// One direction of a connection: bytes in pieces, each of which arrives at a moment of its own, never
/// before the one ahead of it. It holds as many as a socket's buffers would, so a slow reader stops the
/// writer.
///
/// **Threads.** One writes, one reads, any may end it.
final class SimPipe {

    private static final int CAPACITY = 256 << 10;

    private final NetworkFaults.PipeFaults weather;
    private final Deque<Piece> pieces = new ArrayDeque<>();
    private long queued;
    private long lastDueNanos;
    private boolean ending;
    private boolean over;

    private record Piece(ByteBuffer bytes, long dueNanos) {}

    SimPipe(NetworkFaults.PipeFaults weather) {
        this.weather = weather;
    }

    /// Answers false when the pipe is over, or breaks on the way.
    synchronized boolean write(ByteBuffer bytes) throws InterruptedException {
        while (bytes.hasRemaining()) {
            while (queued >= CAPACITY && !isReaderGone()) {
                wait(5); // a way that is mended tells nobody
            }
            if (isReaderGone()) {
                return false;
            }
            int count = Math.min(bytes.remaining(), weather.pieceBytes());
            if (weather.breaksWithin(count)) {
                over = true;
                notifyAll();
                return false;
            }
            ByteBuffer copy = ByteBuffer.allocate(count);
            copy.put(bytes.slice(bytes.position(), count)).flip();
            bytes.position(bytes.position() + count);
            lastDueNanos = Math.max(lastDueNanos, System.nanoTime() + weather.delayNanos());
            pieces.addLast(new Piece(copy, lastDueNanos));
            queued += count;
            notifyAll();
        }
        return true;
    }

    /// Whether the writer can know that nobody reads: not while the way is cut.
    private boolean isReaderGone() {
        return ending || (over && !weather.cut());
    }

    /// Waits for bytes; answers -1 when there will be none.
    synchronized int read(ByteBuffer target) throws InterruptedException {
        while (!over) {
            Piece next = pieces.peekFirst();
            long wait = next == null ? Long.MAX_VALUE : next.dueNanos - System.nanoTime();
            if (weather.cut()) {
                TimeUnit.MILLISECONDS.timedWait(this, 1);
            } else if (next != null && wait <= 0) {
                return take(next, target);
            } else if (next == null && ending) {
                return -1;
            } else if (next == null) {
                wait(5); // a cut is told to nobody
            } else {
                TimeUnit.NANOSECONDS.timedWait(this, Math.max(1, wait));
            }
        }
        return -1;
    }

    private int take(Piece piece, ByteBuffer target) {
        int count = Math.min(piece.bytes.remaining(), target.remaining());
        target.put(piece.bytes.slice(piece.bytes.position(), count));
        piece.bytes.position(piece.bytes.position() + count);
        queued -= count;
        if (!piece.bytes.hasRemaining()) {
            pieces.removeFirst();
        }
        notifyAll();
        return count;
    }

    /// The writer has closed: the reader hears of it after what was written, unless the way is cut.
    synchronized void end() {
        ending = true;
        notifyAll();
    }

    /// It broke: nothing arrives any more.
    synchronized void breakUp() {
        over = true;
        notifyAll();
    }

    @Override
    public synchronized String toString() {
        return queued + " bytes in " + pieces.size() + " pieces" + (ending ? ", ending" : "")
                + (over ? ", broken" : "");
    }
}
