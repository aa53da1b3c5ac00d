import { SkilltraceError } from './errors.js';
import type { Queued } from './lines.js';
import { jsonOf, type Received, type Request, type Transport } from './transport.js';
import type { BatchResult } from './types.js';

/** Null: counted. */
export type Outcome = SkilltraceError | null;

/** @returns an outcome per answer @throws SkilltraceError if some outcome is unknown */
export async function deliver(
  transport: Transport,
  batch: readonly Queued[],
  signal: AbortSignal,
): Promise<readonly Outcome[]> {
  try {
    return outcomesOf(batch, await transport.once(requestOf(batch), signal));
  } catch (error) {
    const refusals = error instanceof SkilltraceError ? refusalsOf(batch, error) : null;
    if (refusals === null) throw error;
    return refusals;
  }
}

/** A single answer is sent alone, so that errors apply to it. */
function requestOf(batch: readonly Queued[]): Request {
  const events = batch.map(({ json }) => json).join();
  return batch.length === 1
    ? { method: 'POST', path: '/api/v1/track-answer', body: events }
    : { method: 'POST', path: '/api/v1/track-answers', body: `{"events":[${events}]}` };
}

function outcomesOf(batch: readonly Queued[], received: Received): Outcome[] {
  const { data } = jsonOf(received) as { readonly data?: Partial<BatchResult> };
  if (batch.length === 1 && data !== undefined) return [null];
  if (data?.results?.length === batch.length) return data.results.map(outcomeOf);
  throw new SkilltraceError('BAD_RESPONSE', 'The answer does not tell of every event', { status: 200 });
}

function outcomeOf(result: BatchResult['results'][number]): Outcome {
  if (!('error' in result)) return null;
  const { code, message, details = [] } = result.error;
  return new SkilltraceError(code, message, { status: result.status, details });
}

/** @returns an error per answer, or null if the response does not explain each rejection */
function refusalsOf(batch: readonly Queued[], error: SkilltraceError): readonly Outcome[] | null {
  if (batch.length === 1 && (isOfAnswers(error) || answersAlone.includes(error.code))) return [error];
  if (!isOfAnswers(error)) return null;
  const { code, status, requestId } = error;
  const refusals = batch.map((_, i) => {
    // Paths look like events/0/skill_id.
    const details = error.details.filter(({ path }) => path.split('/')[1] === `${i}`);
    const message = details.map((detail) => detail.message).join('; ');
    return new SkilltraceError(code, message, { status, details, requestId });
  });
  return refusals.every(({ details }) => details.length > 0) ? refusals : null;
}

const answersOwn: readonly string[] = ['INVALID_REQUEST', 'IDEMPOTENCY_KEY_REUSED', 'LIMIT_EXCEEDED'];

/** Errors that delay only the answer's learner. */
const answersAlone: readonly string[] = ['CONFLICT', 'INTERNAL'];

/** True if the answers are at fault, and not the key, the address or the service. */
export const isOfAnswers = ({ code, status }: SkilltraceError): boolean =>
  answersOwn.includes(code) || status === 413;
