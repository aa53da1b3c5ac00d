/** Programs in TypeScript that use the client as a package, under the strictest settings. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { casesOf } from '../runner/long-form.js';
import { root } from '../runner/root.js';
import { receiverOfDocs } from '../servers/receiver-of-docs.js';

const source = `
import { Skilltrace, SkilltraceError, type Answer, type AnswerStore, type Prediction, type StoredAnswer, type WebhookMessage } from 'skilltrace/client';

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
  const { secret } = await client.createWebhook({ url: 'https://platform.example/hooks', event_types: ['*'] });
  for await (const { webhook_id } of client.allWebhooks())
    for await (const { status } of client.allDeliveries(webhook_id, { limit: 10 })) console.log(status, secret);
  const mapping = await client.xapiMapping();
  await client.setXapiMapping({ ...mapping, unmapped: 'ignore' }, { ifMatch: mapping.etag });
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

/** The data of a message is told by its type. */
export function scoreOf({ type, data }: WebhookMessage): number | null {
  // @ts-expect-error only those of goals have a score
  if (type === 'mastery.reached') return data.target_score;
  return type === 'goal.reached' ? data.target_score : null;
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
  for (const how of casesOf(ways, ways.length)) check(dir, source, how);
}

/** Checks the receiver of docs/webhooks.md likewise, with the packages that it uses beside. */
export function checkReceiver(dir: string): void {
  const modules = join(root, 'node_modules');
  symlinkSync(join(modules, 'standardwebhooks'), join(dir, 'node_modules/standardwebhooks'));
  const options = { types: ['node'], typeRoots: [join(modules, '@types')] };
  check(dir, receiverOfDocs(), { ...ways[0], ...options });
}

function check(dir: string, program: string, options: object): void {
  const tsconfig = { compilerOptions: { ...settings, ...options }, files: ['program.ts'] };
  writeFileSync(join(dir, 'program.ts'), program);
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify(tsconfig));
  const tsc = join(root, 'node_modules/.bin/tsc');
  const { status, stdout } = spawnSync(tsc, ['-p', dir, '--pretty', 'false'], { encoding: 'utf8' });
  assert.equal(status, 0, `${JSON.stringify(options)}: ${stdout}`);
}
