/** Client of the Skilltrace API: docs/client.md. */

export type { IdentifiedAnswer, StoredAnswer } from './answer-queue.js';
export type { AnswerStore } from './answer-store.js';
export type { ExplainOptions, ExportLine } from './api-calls.js';
export type { ListingQuery, TaggedData, WriteOptions } from './call-builder.js';
export type { WaitOptions } from './deadline.js';
export { SkilltraceError, type SkilltraceErrorCode } from './errors.js';
export type { QueueLimits } from './queue-limits.js';
export type { RetryPolicy } from './retry.js';
export { Skilltrace, type SkilltraceOptions } from './skilltrace.js';
export type { CallOptions } from './transport.js';
export type * from './types.js';
