/// Lists the project's classes that an operation crosses.
@NullMarked
package io.kvcache.server.path;

import org.jspecify.annotations.NullMarked;
