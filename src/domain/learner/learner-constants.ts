/** 80 % range: log-odds +- z sqrt(variance + perAnswer / (attempts + priorAnswers)). */
export const expectedRangeConstants = { z: 1.2816, variance: 0.6, perAnswer: 0.5, priorAnswers: 1 } as const;

/** Minimum active days for a slope; level of its interval. */
export const velocityConstants = { minDays: 5, level: 0.9, shortDays: 7, longDays: 28 } as const;
