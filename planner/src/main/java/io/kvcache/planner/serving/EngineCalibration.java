package io.kvcache.planner.serving;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.planner.lab.EngineHardware;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Instant;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;

/// The times of an engine, fitted to measurements. The fields' names are those of its file.
///
/// A prompt of `n` tokens, `c` of them cached, has its first token after `secondsPerRequest`
/// + `c` × `secondsPerCachedToken` + (`n` - `c`) × (`secondsPerToken` + `secondsPerPair` × (`n` + `c`) / 2).
///
/// @param server that was measured
/// @param model that it serves
/// @param measuredAt when
/// @param secondsPerRequest whatever its length, 0 and up
/// @param secondsPerToken to compute a token, above 0
/// @param secondsPerPair more for each token before it, 0 and up
/// @param secondsPerCachedToken to load one, 0 and up
/// @param secondsPerOutputToken from one token of an answer to the next, 0 and up
/// @param blockTokens tokens of the cache's blocks, 1 and up
/// @param longestPrompt in tokens, of those measured
/// @param medianError of the fit: half of the measured prompts are closer than this share
public record EngineCalibration(
        String server,
        String model,
        Instant measuredAt,
        double secondsPerRequest,
        double secondsPerToken,
        double secondsPerPair,
        double secondsPerCachedToken,
        double secondsPerOutputToken,
        int blockTokens,
        int longestPrompt,
        double medianError) {

    private static final int MAX_SECONDS = 3600;
    private static final int MAX_TOKENS = 1 << 20;

    private static final JsonMapper JSON = JsonMapper.builder()
            .enable(SerializationFeature.INDENT_OUTPUT)
            .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
            .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
            .build();

    /// @throws IllegalArgumentException when a value is out of its range
    public EngineCalibration {
        requireSeconds("secondsPerRequest", secondsPerRequest);
        requireSeconds("secondsPerToken", secondsPerToken);
        requireSeconds("secondsPerPair", secondsPerPair);
        requireSeconds("secondsPerCachedToken", secondsPerCachedToken);
        requireSeconds("secondsPerOutputToken", secondsPerOutputToken);
        if (secondsPerToken == 0) {
            throw new IllegalArgumentException("secondsPerToken is 0, must be above 0");
        }
        requireTokens("blockTokens", blockTokens);
        requireTokens("longestPrompt", longestPrompt);
    }

    private static void requireSeconds(String name, double seconds) {
        if (!(seconds >= 0 && seconds <= MAX_SECONDS)) {
            throw new IllegalArgumentException(name + " is " + seconds + ", must be 0 to " + MAX_SECONDS);
        }
    }

    private static void requireTokens(String name, int tokens) {
        if (tokens < 1 || tokens > MAX_TOKENS) {
            throw new IllegalArgumentException(name + " is " + tokens + ", must be 1 to " + MAX_TOKENS);
        }
    }

    /// Reads a file that [#write] wrote.
    ///
    /// @throws IllegalArgumentException when it is another file; the message says what is wrong in it
    /// @throws IOException when it cannot be read
    public static EngineCalibration read(Path file) throws IOException {
        try {
            return JSON.readValue(Files.readAllBytes(file), EngineCalibration.class);
        } catch (NoSuchFileException missing) {
            throw new IllegalArgumentException("missing file: " + file, missing);
        } catch (JacksonException malformed) {
            Throwable cause = malformed.getCause();
            String reason =
                    cause instanceof IllegalArgumentException ? cause.getMessage() : malformed.getOriginalMessage();
            throw new IllegalArgumentException(
                    file + " is not a calibration: " + String.valueOf(reason).replaceFirst(" \\(index \\d+\\);.*", ""),
                    malformed);
        }
    }

    /// Writes it as JSON.
    public void write(Path file) throws IOException {
        Files.writeString(file, JSON.writeValueAsString(this) + "\n");
    }

    /// An engine with these times, one request after another.
    ///
    /// @param bytesPerToken of KV, for the bytes that are read; changes no time
    public EngineHardware hardware(long bytesPerToken) {
        return new EngineHardware(
                new PrefillCost(secondsPerToken, secondsPerPair),
                bytesPerToken,
                bytesPerToken / secondsPerCachedToken,
                EngineHardware.NVME_BYTES_PER_SECOND,
                EngineHardware.NVME_LATENCY_SECONDS,
                new EngineHardware.RequestTimes(secondsPerRequest, secondsPerOutputToken));
    }

    EngineCalibration withMedianError(double error) {
        return new EngineCalibration(
                server,
                model,
                measuredAt,
                secondsPerRequest,
                secondsPerToken,
                secondsPerPair,
                secondsPerCachedToken,
                secondsPerOutputToken,
                blockTokens,
                longestPrompt,
                error);
    }

    /// The fitted time to the first token.
    public double firstTokenSeconds(int promptTokens, int cachedTokens) {
        return secondsPerRequest
                + cachedTokens * secondsPerCachedToken
                + new PrefillCost(secondsPerToken, secondsPerPair).seconds(cachedTokens, promptTokens);
    }
}
