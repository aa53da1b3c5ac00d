/** A program in TypeScript that uses the client as a package, under the strictest settings. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { casesOf } from './long-form.js';
import { root } from './root.js';

const source = `
import { Skilltrace, SkilltraceError, type Answer, type AnswerStore, type Prediction, type StoredAnswer } from 'skilltrace/client';

const kept: StoredAnswer[] = [];
const store: AnswerStore = {
  load: async () => kept,
  add: async (answers) => void kept.push(...answers),
  remove: async () => undefined,
};

export async function use(confidence: number | undefined, signal: AbortSignal): Promise<number> {
  await using client = new Skilltrace({ baseUrl: '/analytics', apiKey: async () => 'key', queue: { lingerMs: 100 }, store });
  const answer: Answer = { user_id: 'u', skill_id: 's', is_correct: true, confidence_score: confidence };
  const id: string = await client.track(answer);
  await client.flush({ signal, timeoutMs: 1000 });
  const prediction: Prediction = await client.predictions('u', { days: 60, signal });
  const inSixtyDays: number = prediction.predicted_total_in_60_days ?? 0;
  const goal = await client.goal('u');
  await client.setGoal('u', { target_score: 1200 }, { ifMatch: goal.etag });
  await client.setSkill('s', { ...(await client.skill('s')), weight: 2 });
  for (const result of (await client.trackAnswers([answer])).results)
    if ('error' in result) console.log(result.error.code, result.error.details?.[0]?.path);
  for await (const attempt of client.allAttempts('u')) console.log(attempt.learner_seq, id);
  for await (const line of client.exportLearner('u', { signal })) console.log(line.type);
  try {
    await client.mastery('u');
  } catch (error) {
    if (error instanceof SkilltraceError && error.code === 'USER_NOT_FOUND') return error.retryAfterMs ?? error.status;
  }
  // @ts-expect-error an answer has a learner
  await client.track({ skill_id: 's', is_correct: true });
  // @ts-expect-error no code of this name
  if (new SkilltraceError('TIMEOUT', '').code === 'NO_SUCH_CODE') return 0;
  return inSixtyDays;
}
`;

const settings = {
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable'],
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: false,
  skipLibCheck: false,
  noEmit: true,
};

/** How TypeScript finds a package. */
const ways = [
  { module: 'node16', moduleResolution: 'node16' },
  { module: 'esnext', moduleResolution: 'bundler' },
];

/** Checks the program in a folder whose node_modules has the package; in the long form for each way to find it. */
export function checkConsumer(dir: string): void {
  writeFileSync(join(dir, 'consumer.ts'), source);
  for (const how of casesOf(ways, ways.length)) {
    writeFileSync(
      join(dir, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: { ...settings, ...how }, files: ['consumer.ts'] }),
    );
    const tsc = join(root, 'node_modules/.bin/tsc');
    const { status, stdout } = spawnSync(tsc, ['-p', dir, '--pretty', 'false'], { encoding: 'utf8' });
    assert.equal(status, 0, `${how.moduleResolution}: ${stdout}`);
  }
}
