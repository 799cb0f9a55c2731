package io.kvcache.bench.disk;

import java.io.IOException;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// What fio says of a job, or of a group of them, in its JSON of version 3.
///
/// @param bytes read and written
/// @param runMillis from the first request to the last completion; of a group, the longest
/// @param jobMillis of a group, the sum
/// @param cpuPercent user and system time as a share of `jobMillis`
record FioReport(long bytes, long runMillis, long jobMillis, double cpuPercent) {

    private static final JsonMapper JSON = JsonMapper.builder().build();

    /// @param text fio's output, where complaints may come before the JSON
    /// @throws IOException that says what is missing
    static FioReport parse(String text) throws IOException {
        JsonNode job = job(text);
        JsonNode read = job.path("read");
        JsonNode write = job.path("write");
        if (job.path("error").asInt(0) != 0) {
            throw new IOException("fio failed with error " + job.path("error").asInt(0));
        }
        FioReport report = new FioReport(
                number(read, "io_bytes") + number(write, "io_bytes"),
                number(read, "runtime") + number(write, "runtime"),
                number(job, "job_runtime"),
                required(job, "usr_cpu").asDouble() + required(job, "sys_cpu").asDouble());
        if (report.bytes == 0 || report.runMillis == 0) {
            throw new IOException("fio moved nothing: " + report);
        }
        return report;
    }

    private static JsonNode job(String text) throws IOException {
        int start = text.indexOf('{');
        if (start < 0) {
            throw new IOException("fio printed no JSON: " + text.strip());
        }
        try {
            return required(JSON.readTree(text.substring(start)).path("jobs"), 0);
        } catch (JacksonException broken) {
            throw new IOException("fio printed broken JSON: " + broken.getOriginalMessage(), broken);
        }
    }

    private static JsonNode required(JsonNode jobs, int index) throws IOException {
        JsonNode job = jobs.path(index);
        if (job.isMissingNode()) {
            throw new IOException("fio reported no job");
        }
        return job;
    }

    private static JsonNode required(JsonNode node, String field) throws IOException {
        JsonNode value = node.path(field);
        if (!value.isNumber()) {
            throw new IOException("fio's JSON has no number " + field);
        }
        return value;
    }

    private static long number(JsonNode node, String field) throws IOException {
        return required(node, field).asLong();
    }

    TransferResult toTransferResult() {
        return new TransferResult(bytes, runMillis / 1e3, cpuPercent / 100 * jobMillis / 1e3, 0, "");
    }
}
