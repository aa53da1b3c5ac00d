/**
 * Increase it when a model constant changes. "Our choice" means without a source; for "simulated" and "tuned"
 * see docs/model.md.
 */
export const modelVersion = 5;
