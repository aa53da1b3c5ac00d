/**
 * Increase it when a formula or constant changes: every tenant is then fitted again. Sources of constants: "our
 * choice" has none; "simulated" and "tuned" are in docs/understand/model-results.md and score-results.md.
 */
export const formulaVersion = 6;
