/// Tests of the files in `deploy/` and of the flags that start a server.
@NullMarked
package io.kvcache.server.deploy;

import org.jspecify.annotations.NullMarked;
