/// Tests of reports.
@NullMarked
package io.kvcache.planner.report;

import org.jspecify.annotations.NullMarked;
