/// Puts what was built into the form that is handed on: one jar that `java -jar` runs.
///
/// May not import anything else of ours: it runs before there is anything to run.
@NullMarked
package io.kvcache.bench.pack;

import org.jspecify.annotations.NullMarked;
