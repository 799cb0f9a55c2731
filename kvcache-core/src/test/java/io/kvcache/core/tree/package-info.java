/// Tests of the records and their index, with one thread and with readers beside a writer.
@NullMarked
package io.kvcache.core.tree;

import org.jspecify.annotations.NullMarked;
