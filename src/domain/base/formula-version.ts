/**
 * Increase it when a model constant changes. "Our choice": no source. "Simulated", "tuned": see
 * docs/model.md.
 */
export const formulaVersion = 5;
