package io.kvcache.cluster;

import io.kvcache.cluster.DropRecord.NamespaceDigest;
import java.io.IOException;
import java.util.List;

/// The store of a server, as far as drops of the cluster concern it, and the file that remembers them.
///
/// **Threads.** Any.
public interface DropTarget {

    /// Returns false while the disks are being read and may still tell of a namespace that the store does not know
    /// yet.
    boolean canDrop(NamespaceDigest namespace);

    /// Drops something here; nothing where the store does not know the namespace.
    ///
    /// @return how many blocks went
    long drop(DropRecord drop);

    /// Remembers drops for ever. All of them have been applied.
    ///
    /// @param added since the last call, in the order of the log
    /// @throws IOException when the disk fails. The same are given again
    void remember(List<DropRecord> added) throws IOException;

    /// Has [#repair] drop everything of the cluster that is here, as it cannot be known what was dropped.
    void giveUp();

    /// Drops what has to go although no record names it, as the file was damaged or others cannot tell; as far as that
    /// is possible yet.
    ///
    /// @return whether nothing of it is left
    boolean repair();
}
