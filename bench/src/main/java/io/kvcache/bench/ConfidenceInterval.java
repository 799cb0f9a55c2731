package io.kvcache.bench;

import java.util.List;

/// The mean of independent measurements, and the interval around it that holds the true mean with 95 %, by
/// Student's t distribution.
///
/// @param mean of the measurements
/// @param halfWidth from the mean to either end of the interval
public record ConfidenceInterval(double mean, double halfWidth) {

    private static final double CONFIDENCE = 0.95;

    /// Halvings of the range that the quantile is searched in: more change no bit of it.
    private static final int BISECTIONS = 200;

    /// Computes it.
    ///
    /// @throws IllegalArgumentException when there are fewer than two values
    public static ConfidenceInterval of(List<Double> values) {
        int count = values.size();
        if (count < 2) {
            throw new IllegalArgumentException("values are " + count + ", must be at least 2");
        }
        double mean = values.stream().mapToDouble(Double::doubleValue).sum() / count;
        double squares = values.stream()
                .mapToDouble(value -> (value - mean) * (value - mean))
                .sum();
        double standardError = Math.sqrt(squares / (count - 1) / count);
        return new ConfidenceInterval(mean, standardError == 0 ? 0 : quantile(count - 1) * standardError);
    }

    /// Lower end.
    public double low() {
        return mean - halfWidth;
    }

    /// Upper end.
    public double high() {
        return mean + halfWidth;
    }

    /// Returns the t that a variable of the distribution exceeds, in absolute value, with 5 %.
    ///
    /// @param degrees of freedom, 1 and up
    static double quantile(int degrees) {
        double low = 0;
        double high = Math.PI / 2;
        for (int i = 0; i < BISECTIONS; i++) {
            double middle = (low + high) / 2;
            if (probability(middle, degrees) < CONFIDENCE) {
                low = middle;
            } else {
                high = middle;
            }
        }
        return Math.tan(low) * Math.sqrt(degrees);
    }

    /// The probability that a variable is, in absolute value, below `tan(angle) * sqrt(degrees)`: the finite
    /// sum that the distribution's integral is for a whole number of degrees (Abramowitz and Stegun, 26.7.3 and
    /// 26.7.4).
    private static double probability(double angle, int degrees) {
        double cosine = Math.cos(angle);
        boolean odd = degrees % 2 == 1;
        double term = odd ? cosine : 1;
        double sum = degrees == 1 ? 0 : term;
        for (int k = odd ? 3 : 2; k < degrees; k += 2) {
            term *= cosine * cosine * (k - 1) / k;
            sum += term;
        }
        double product = Math.sin(angle) * sum;
        return odd ? 2 / Math.PI * (angle + product) : product;
    }
}
