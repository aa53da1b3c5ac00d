export const examples: Readonly<Record<string, unknown>> = {};
