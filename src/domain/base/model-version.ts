/**
 * Increase it with every change of a constant of the models, because results change. In the files of constants
 * "decided here" means without a source, and "simulated" or "tuned" refers to docs/model.md.
 */
export const modelVersion = 5;
