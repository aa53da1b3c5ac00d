/** Maximum skills of a learner and of a tenant. An answer on a further skill is rejected. */
export type SkillLimits = { readonly perLearner: number; readonly perTenant: number };

export interface WorkerSettings {
  readonly redisUrl: string;
  /** Replicas that store an answer before it is confirmed. */
  readonly waitReplicas: number;
  readonly partitions: number;
  /** Limit per partition. Above it, answers are rejected. */
  readonly maxOutboxRows: number;
  /** Limit per partition. Further forecasts are dropped. */
  readonly maxPendingForecasts: number;
  readonly skillLimits: SkillLimits;
  /** Default: 30 s. */
  readonly itemCacheMs?: number | undefined;
}
