package io.kvcache.planner.serving;

/// Least squares of a few unknowns, none of them below 0.
final class NonNegativeLeastSquares {

    private static final int MAX_ROUNDS = 100_000;
    private static final double CONVERGED = 1e-13;

    private NonNegativeLeastSquares() {}

    /// Finds the unknowns for which the rows times them are closest to 1 each, one unknown after another until
    /// none of them changes.
    ///
    /// @param rows as many values each as there are unknowns
    static double[] solve(double[][] rows) {
        int count = rows[0].length;
        double[] scale = new double[count];
        for (double[] row : rows) {
            for (int i = 0; i < count; i++) {
                scale[i] = Math.hypot(scale[i], row[i]);
            }
        }
        double[][] products = new double[count][count];
        double[] sums = new double[count];
        for (double[] row : rows) {
            for (int i = 0; i < count; i++) {
                double value = scale[i] == 0 ? 0 : row[i] / scale[i];
                sums[i] += value;
                for (int j = 0; j < count; j++) {
                    products[i][j] += scale[j] == 0 ? 0 : value * row[j] / scale[j];
                }
            }
        }
        double[] unknowns = descend(products, sums);
        for (int i = 0; i < count; i++) {
            unknowns[i] = scale[i] == 0 ? 0 : unknowns[i] / scale[i];
        }
        return unknowns;
    }

    private static double[] descend(double[][] products, double[] sums) {
        double[] unknowns = new double[sums.length];
        double change = 1;
        for (int round = 0; round < MAX_ROUNDS && change > CONVERGED; round++) {
            change = 0;
            for (int i = 0; i < unknowns.length; i++) {
                if (products[i][i] == 0) {
                    continue;
                }
                double rest = sums[i];
                for (int j = 0; j < unknowns.length; j++) {
                    rest -= j == i ? 0 : products[i][j] * unknowns[j];
                }
                double better = Math.max(0, rest / products[i][i]);
                change = Math.max(change, Math.abs(better - unknowns[i]));
                unknowns[i] = better;
            }
        }
        return unknowns;
    }
}
