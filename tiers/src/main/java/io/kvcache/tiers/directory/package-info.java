/// The directory that holds one disk tier: which process may use it, what is in it, and every reason to leave it
/// alone.
///
/// [io.kvcache.tiers.directory.DiskDirectory] opens one; a
/// [io.kvcache.tiers.directory.DiskDirectoryException] says why it does not.
///
/// May import `io.kvcache.tiers.device`, `io.kvcache.tiers.disk`, `io.kvcache.tiers.os` and the JDK only.
@NullMarked
package io.kvcache.tiers.directory;

import org.jspecify.annotations.NullMarked;
