/** Client of the Skilltrace API: docs/client.md. */

export type { ExplainOptions, ExportLine } from './calls.js';
export type { WaitOptions } from './deadline.js';
export { SkilltraceError, type SkilltraceErrorCode } from './errors.js';
export type { AnswerStore } from './journal.js';
export type { QueueLimits } from './limits.js';
export type { IdentifiedAnswer, StoredAnswer } from './lines.js';
export type { AllQuery, Tagged, WriteOptions } from './operations.js';
export type { RetryPolicy } from './retry.js';
export { Skilltrace, type SkilltraceOptions } from './skilltrace.js';
export type { CallOptions } from './transport.js';
export type * from './types.js';
