/// Tests of reports.
@NullMarked
package io.kvcache.bench.report;

import org.jspecify.annotations.NullMarked;
