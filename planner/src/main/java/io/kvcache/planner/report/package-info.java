/// Results as a document: one HTML file with charts and tables that loads nothing and also reads without scripts.
@NullMarked
package io.kvcache.planner.report;

import org.jspecify.annotations.NullMarked;
