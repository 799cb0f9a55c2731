package io.kvcache.tiers.disk;

import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.identity.PartKind;
import io.kvcache.core.identity.RopeOrigin;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// A namespace as bytes: its seven texts, its parts, and its digest, by which a reader knows that it
/// understood.
final class NamespaceSerializer {

    private NamespaceSerializer() {}

    static byte[] write(Namespace namespace) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeUTF(namespace.model());
            out.writeUTF(namespace.revision());
            out.writeUTF(namespace.dtype());
            out.writeUTF(namespace.layout());
            out.writeUTF(namespace.adapter());
            out.writeUTF(namespace.tenant());
            out.writeUTF(namespace.salt());
            out.writeInt(namespace.parts().size());
            for (Part part : namespace.parts()) {
                write(part, out);
            }
            out.write(namespace.digest());
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
        return bytes.toByteArray();
    }

    private static void write(Part part, DataOutputStream out) throws IOException {
        BlockShape shape = part.shape();
        out.writeUTF(part.kind().name());
        out.writeUTF(shape.dtype().name());
        out.writeUTF(shape.order().name());
        int[] numbers = {
            part.group(),
            part.rank(),
            part.window(),
            part.rotation().basePosition(),
            shape.layers(),
            shape.planes(),
            shape.kvHeads(),
            shape.headDim(),
            shape.blockTokens()
        };
        for (int number : numbers) {
            out.writeInt(number);
        }
    }

    /// Answers null when the text does not give a namespace of the digest it carries: another version of this
    /// class wrote it, under the same format version.
    static @Nullable Namespace read(byte[] text) {
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(text))) {
            Namespace.Builder builder = Namespace.builder(in.readUTF())
                    .revision(in.readUTF())
                    .dtype(in.readUTF())
                    .layout(in.readUTF())
                    .adapter(in.readUTF())
                    .tenant(in.readUTF())
                    .salt(in.readUTF());
            int parts = in.readInt();
            for (int i = 0; i < parts; i++) {
                builder.part(readPart(in));
            }
            Namespace namespace = builder.build();
            return Arrays.equals(namespace.digest(), in.readAllBytes()) ? namespace : null;
        } catch (IOException | IllegalArgumentException strange) {
            return null;
        }
    }

    private static Part readPart(DataInputStream in) throws IOException {
        PartKind kind = PartKind.valueOf(in.readUTF());
        Dtype dtype = Dtype.valueOf(in.readUTF());
        AxisOrder order = AxisOrder.valueOf(in.readUTF());
        int group = in.readInt();
        int rank = in.readInt();
        int window = in.readInt();
        RopeOrigin rotation = new RopeOrigin(in.readInt());
        BlockShape shape =
                new BlockShape(in.readInt(), in.readInt(), in.readInt(), in.readInt(), in.readInt(), dtype, order);
        return new Part(group, rank, kind, window, shape, rotation);
    }
}
