import type { QueuedAnswer } from './answer-queue.js';
import { SkilltraceError } from './errors.js';
import { type ApiRequest, parseResponse, type TextResponse, type Transport } from './transport.js';
import type { BatchResult } from './types.js';

/** Null: counted. */
export type DeliveryOutcome = SkilltraceError | null;

/** @returns an outcome per answer @throws SkilltraceError if some outcome is unknown */
export async function deliver(
  transport: Transport,
  batch: readonly QueuedAnswer[],
  signal: AbortSignal,
): Promise<readonly DeliveryOutcome[]> {
  try {
    return readOutcomes(batch, await transport.sendOnce(buildRequest(batch), signal));
  } catch (error) {
    const rejections = error instanceof SkilltraceError ? findRejections(batch, error) : null;
    if (rejections === null) throw error;
    return rejections;
  }
}

/** A single answer is sent alone, so that errors apply to it. */
function buildRequest(batch: readonly QueuedAnswer[]): ApiRequest {
  const events = batch.map(({ json }) => json).join();
  return batch.length === 1
    ? { method: 'POST', path: '/api/v1/track-answer', body: events }
    : { method: 'POST', path: '/api/v1/track-answers', body: `{"events":[${events}]}` };
}

function readOutcomes(batch: readonly QueuedAnswer[], received: TextResponse): DeliveryOutcome[] {
  const { data } = parseResponse(received) as { readonly data?: Partial<BatchResult> };
  if (batch.length === 1 && data !== undefined) return [null];
  if (data?.results?.length === batch.length) return data.results.map(toOutcome);
  throw new SkilltraceError('BAD_RESPONSE', 'The response does not have a result for every event', {
    status: 200,
  });
}

function toOutcome(result: BatchResult['results'][number]): DeliveryOutcome {
  if (!('error' in result)) return null;
  const { code, message, details = [] } = result.error;
  return new SkilltraceError(code, message, { status: result.status, details });
}

/** @returns an error per answer, or null if the response does not explain each rejection */
function findRejections(
  batch: readonly QueuedAnswer[],
  error: SkilltraceError,
): readonly DeliveryOutcome[] | null {
  if (batch.length === 1 && (isAnswerError(error) || singleAnswerCodes.includes(error.code))) return [error];
  if (!isAnswerError(error)) return null;
  const { code, status, requestId } = error;
  const rejections = batch.map((_, i) => {
    // Paths look like events/0/skill_id.
    const details = error.details.filter(({ path }) => path.split('/')[1] === `${i}`);
    const message = details.map((detail) => detail.message).join('; ');
    return new SkilltraceError(code, message, { status, details, requestId });
  });
  return rejections.every(({ details }) => details.length > 0) ? rejections : null;
}

const answerErrorCodes: readonly string[] = ['INVALID_REQUEST', 'IDEMPOTENCY_KEY_REUSED', 'LIMIT_EXCEEDED'];

/** Errors that delay only the answer's learner. */
const singleAnswerCodes: readonly string[] = ['CONFLICT', 'INTERNAL'];

/** True if the answers are at fault, and not the key, the address or the service. */
export const isAnswerError = ({ code, status }: SkilltraceError): boolean =>
  answerErrorCodes.includes(code) || status === 413;
