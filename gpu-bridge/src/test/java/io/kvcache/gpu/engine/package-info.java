/// Engines at the door: in this process, in another JVM, and in Python.
@NullMarked
package io.kvcache.gpu.engine;

import org.jspecify.annotations.NullMarked;
