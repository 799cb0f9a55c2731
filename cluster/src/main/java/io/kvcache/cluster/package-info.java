/// Which servers form one cache: membership and the view that follows from it. JGroups is used by one class, which
/// nothing loads without `cluster:` in the settings.
@NullMarked
package io.kvcache.cluster;

import org.jspecify.annotations.NullMarked;
