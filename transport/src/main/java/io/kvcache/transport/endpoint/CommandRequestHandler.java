package io.kvcache.transport.endpoint;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.endpoint.EndpointRequest.RequestException;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Requests of other protocols that another server of the cluster passes on.
final class CommandRequestHandler {

    private final EndpointContext context;
    private final ClientSession session;

    /// The request whose bytes arrive.
    private CommandRunner.@Nullable Command arriving;

    CommandRequestHandler(EndpointContext context, ClientSession session) {
        this.context = context;
        this.session = session;
    }

    /// `u8 dialect, 7 × 0`, payload → `u64 bytes`, then DATA with them
    PayloadSink execute(FrameHeader header, EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        int dialect = body.u8("dialect");
        CommandRunner.Command command = begin(dialect, header.payloadBytes());
        arriving = command;
        return PayloadSink.into(List.of(command.request()), sum -> {
            arriving = null;
            run(request, command);
        });
    }

    private CommandRunner.Command begin(int dialect, int bytes) throws RequestException {
        EndpointOptions.ClusterAccess cluster = context.options().cluster();
        CommandRunner runner = cluster == null ? null : cluster.commands();
        if (runner == null || !session.isServer()) {
            throw new RequestException(Status.FORBIDDEN, "EXECUTE; allowed: from a server of the same cluster");
        }
        context.requireNotDraining();
        CommandRunner.Command command;
        try {
            command = runner.begin(session.tenant(), dialect, bytes);
        } catch (IllegalArgumentException wrong) {
            throw new RequestException(Status.INVALID, String.valueOf(wrong.getMessage()));
        }
        if (command == null) {
            throw new RequestException(Status.BUSY, "as many requests are passed on as there is memory for");
        }
        return command;
    }

    private void run(EndpointRequest request, CommandRunner.Command command) {
        try {
            context.here(session, request, () -> reply(request, command));
        } catch (RequestException refused) {
            request.reject(refused);
        } finally {
            command.close();
        }
    }

    private void reply(EndpointRequest request, CommandRunner.Command command) throws RequestException {
        List<MemorySegment> pieces;
        try {
            pieces = command.run(Duration.ofNanos(request.deadlineNanos()));
        } catch (IOException none) {
            throw new RequestException(Status.FAILED, String.valueOf(none.getMessage()));
        }
        Payload payload = Payload.of(pieces);
        ChunkedCrc sum = new ChunkedCrc();
        pieces.forEach(sum::update);
        request.reply(new BodyWriter().i64(payload.bytes()));
        request.send(request.dataFrames().next(0, sum.value(), payload));
    }

    /// Gives up what did not arrive whole.
    void onClosed() {
        CommandRunner.Command command = arriving;
        if (command != null) {
            arriving = null;
            command.close();
        }
    }
}
