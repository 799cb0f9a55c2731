package io.kvcache.bench.cli;

import io.kvcache.bench.gpu.BenchDevice;
import io.kvcache.bench.gpu.GpuComparison;
import io.kvcache.bench.gpu.GpuComparison.GpuCopyResult;
import io.kvcache.gpu.driver.DeviceDriver.DeviceInfo;
import java.util.Locale;

/// What `bench gpu` prints: a row for each way, beside what a bare copy made in the same rounds.
///
/// @param scale how much was moved, and how often
record GpuComparisonReport(GpuReportWriter pages, DeviceInfo info, boolean gpu, GpuComparison scale) {

    /// A line of JSON.
    record JsonLine(
            String device,
            String driver,
            boolean gpu,
            long bytes,
            int rounds,
            boolean registered,
            String name,
            double gigabytes,
            double bareGigabytes,
            double ratio,
            double least,
            boolean ok) {}

    /// The device, and how much is moved on it.
    ///
    /// @param limit why it is no more than that; empty when it is as much as is ever moved
    void printHead(BenchDevice device, String limit) {
        String name = info.name() + ", " + info.driver();
        pages.printRow(name + (device.isGpu() ? "" : ": the figures mean nothing"));
        pages.printRow(String.format(
                Locale.ROOT, "%d MiB each, medians of %d rounds%s", scale.bytes() >> 20, scale.rounds(), limit));
        pages.printRow(
                String.format(Locale.ROOT, "%-14s %10s %12s %8s  %s", "", "GB/s", "bare GB/s", "ratio", "budget"));
    }

    void printResult(GpuCopyResult cell) {
        pages.printRow(row(cell));
        pages.printJson(new JsonLine(
                info.name(),
                info.driver(),
                gpu,
                scale.bytes(),
                scale.rounds(),
                cell.registered(),
                cell.name(),
                cell.gigabytes(),
                cell.baselineGigabytes(),
                cell.ratio(),
                cell.minRatio(),
                cell.meetsMinRatio()));
    }

    private String row(GpuCopyResult cell) {
        return String.format(
                Locale.ROOT,
                "%-14s %10.2f %12.2f %8.2f  %s%s%s",
                cell.name(),
                cell.gigabytes(),
                cell.baselineGigabytes(),
                cell.ratio(),
                cell.minRatio() == 0 ? "-" : String.format(Locale.ROOT, ">= %.2f", cell.minRatio()),
                gpu && !cell.meetsMinRatio() ? "  missed" : "",
                cell.registered() ? "" : "  HOST MEMORY IS NOT REGISTERED");
    }
}
