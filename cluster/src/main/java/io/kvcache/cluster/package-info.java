/// Which servers form one cache: membership and the view that follows from it.
///
/// [ViewKeeper] keeps a server's view by what a [Membership] tells. [JGroupsMembership] is the one of a server. It and
/// what it alone uses import JGroups, and are not loaded without `cluster:` in the settings.
@NullMarked
package io.kvcache.cluster;

import org.jspecify.annotations.NullMarked;
