/**
 * Increase it with every change of a model constant, because results change. In the constants, "our choice"
 * means that there is no source; for "simulated" and "tuned" see docs/model.md.
 */
export const modelVersion = 5;
