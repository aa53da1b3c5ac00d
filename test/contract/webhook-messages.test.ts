/** Webhooks from the answer to the receiver: what is told to whom, and what becomes of it, over HTTP alone. */
import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { parseLearnerHash, type WebhookType } from '../../src/contracts/webhooks/webhook-events.js';
import { goalConstants } from '../../src/domain/base/score-constants.js';
import { indices } from '../../src/lists.js';
import { messagesPrefix, nextDeliveriesKey } from '../../src/store/redis/keys.js';
import { bigSkills } from '../support/builders/fits.js';
import { erasureDone } from '../support/builders/learner-data.js';
import { madeAnswers, storeAnswers } from '../support/builders/made-answers.js';
import { runCommand } from '../support/commands/command.js';
import { assertAnswer } from '../support/http/answer-check.js';
import { described, misfits } from '../support/http/description.js';
import { type Caller, callerOf, type JsonAnswer } from '../support/http/http.js';
import { targetOf } from '../support/http/route-table.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { startReceiver, verified } from '../support/servers/receiver.js';
import { clickhouseOf, keysOf, redisOf, type Scoped, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await startService({ after }, { webhookAllowPrivate: true });
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const keys = await keysOf({ after }, service);

exitAfterTests();

const callerIn = async (tenant: string): Promise<Caller> => callerOf(service, await keys.add({ tenant }));

/** Every answer of this file is one of the contract. */
async function ask(by: Caller, method: string, path: string, body?: unknown): Promise<JsonAnswer> {
  const full = `/api/v1/${path}`;
  const answer = await by.call({
    ...{ method, path: full },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  assertAnswer(answer, { method, target: targetOf(method, full.split('?')[0] as string), requestId: null });
  return answer;
}

const told = ({ status, json }: JsonAnswer): [number, string] => [status, json.error?.code];

type Payload = ReturnType<typeof verified>;

/** Each message is one that the description has under `webhooks`. */
function assertDescribed(payload: Payload): void {
  const content = described.webhooks[payload.type]?.post?.requestBody?.content['application/json'];
  assert.ok(content, payload.type);
  assert.deepEqual(misfits(content.schema, payload), [], JSON.stringify(payload));
}

/** An endpoint with a receiver of its own. */
async function endpointOf(t: Scoped, by: Caller, ...eventTypes: (WebhookType | '*')[]) {
  const receiver = await startReceiver(t);
  const created = await ask(by, 'POST', 'webhooks', { url: receiver.url, event_types: eventTypes });
  assert.equal(created.status, 201, created.text);
  const { webhook_id: id, secret } = created.json.data;
  const at = (more = '') => `webhooks/${id}${more}`;
  const deliveries = async (query = ''): Promise<JsonAnswer['json'][]> =>
    (await ask(by, 'GET', at(`/deliveries${query}`))).json.data.deliveries;
  return {
    ...{ id, secret, receiver, at, deliveries },
    patch: (change: object) => ask(by, 'PATCH', at(), change),
    /** @returns the message's id */
    test: async (): Promise<string> => {
      const answer = await ask(by, 'POST', at('/test'));
      assert.equal(answer.status, 202, answer.text);
      return answer.json.data.message_id;
    },
    rotate: async (body?: object): Promise<string> =>
      (await ask(by, 'POST', at('/rotate-secret'), body)).json.data.secret,
    redeliver: (messageId: string) => ask(by, 'POST', at(`/deliveries/${messageId}/redeliver`)),
    /** Waits for so many, in all. */
    payloads: async (count: number): Promise<Payload[]> => {
      const payloads = await receiver.payloads(count, secret);
      payloads.forEach(assertDescribed);
      return payloads;
    },
    settled: () =>
      waitFor('settled messages', async () =>
        (await deliveries()).every(({ status }) => status === 'delivered'),
      ),
  };
}

/** Right answers until the skill is mastered. @returns the last answer's data, with its event id */
async function master(by: Caller, userId: string, skillId = 'algebra') {
  for (let i = 0; ; i++) {
    const event_id = `${userId}-${skillId}-${i}`;
    const { status, json } = await by.track({
      ...{ user_id: userId, skill_id: skillId, is_correct: true, event_id },
    });
    assert.equal(status, 200);
    if (json.data.mastery_after >= 0.95) return { ...json.data, event_id };
  }
}

const metric = async (name: string): Promise<number> => {
  const { text } = await callerOf(service, null).raw({ method: 'GET', path: '/metrics' });
  const line = text.split('\n').find((one) => one.startsWith(name) && / [\d.e+]+$/.test(one));
  return Number(line?.slice(line.lastIndexOf(' ')));
};

/** Waits until each event is a message of whoever is told of it. */
const handedOut = () =>
  waitFor('messages of all events', async () => (await metric('skilltrace_webhook_events_waiting')) === 0);

const idsOf = (received: readonly { readonly id: string }[]): string[] => received.map(({ id }) => id);

// They mostly wait for one another's seconds.
suite('messages', { concurrency: true }, () => {
  test('mastery reaches those who ask for it, in their tenant alone', async (t) => {
    const [by, other] = [await callerIn('mine'), await callerIn('yours')];
    const asking = await endpointOf(t, by, 'mastery.reached', 'plateau.ended');
    const all = await endpointOf(t, by, '*');
    const filtered = await endpointOf(t, by, 'goal.reached', 'model.published');
    const foreign = await endpointOf(t, other, '*');
    const { mastery_after, total_attempts, correct_attempts, event_id } = await master(by, 'Zoë 🙂');
    const [payload, ...more] = await asking.payloads(1);
    assert.equal(payload?.type, 'mastery.reached');
    const { occurred_at, ...data } = payload.data;
    assert.equal(occurred_at, payload.timestamp);
    const figures = { mastery_after, total_attempts, correct_attempts };
    assert.deepEqual(data, { user_id: 'Zoë 🙂', skill_id: 'algebra', event_id, ...figures });
    assert.deepEqual(more, []);
    assert.deepEqual(await all.payloads(1), [payload]);
    assert.deepEqual(idsOf(all.receiver.received), idsOf(asking.receiver.received));
    await handedOut();
    assert.deepEqual([await filtered.deliveries(), await foreign.deliveries()], [[], []]);
    // An endpoint is asked for nothing when it is tried.
    await Promise.all([filtered.test(), foreign.test()]);
    for (const one of [filtered, foreign])
      assert.deepEqual(
        (await one.payloads(1)).map(({ type, data: sent }) => [type, sent]),
        [['webhook.test', { webhook_id: one.id }]],
      );
    const foreignId = asking.receiver.received[0]?.id ?? '';
    for (const [method, path] of [
      ['GET', asking.at('/deliveries')],
      ['POST', asking.at('/test')],
      ['POST', asking.at(`/deliveries/${foreignId}/redeliver`)],
    ] as const)
      assert.deepEqual(told(await ask(other, method, path)), [404, 'WEBHOOK_NOT_FOUND']);
  });

  test('deliveries are listed in pages, and each can be sent again under its id', async (t) => {
    const by = await callerIn('listed');
    const own = await endpointOf(t, by, '*');
    const sent: string[] = [];
    for (const _ of indices(5)) sent.unshift(await own.test());
    await own.payloads(5);
    await own.settled();
    const pages: string[][] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = cursor === '' ? '?limit=2' : `?limit=2&cursor=${cursor}`;
      const { data } = (await ask(by, 'GET', own.at(`/deliveries${query}`))).json;
      assert.equal(data.webhook_id, own.id);
      pages.push(data.deliveries.map((one: { message_id: string }) => one.message_id));
      cursor = data.next_cursor;
    }
    assert.deepEqual(pages, [sent.slice(0, 2), sent.slice(2, 4), sent.slice(4)]);
    const told = {
      ...{ type: 'webhook.test', status: 'delivered', tries: 1 },
      ...{ last_status: 204, last_error: null, next_try_at: null },
    };
    for (const { message_id, created_at, ...rest } of await own.deliveries()) {
      assert.deepEqual(rest, told);
      assert.ok(sent.includes(message_id) && Math.abs(Date.parse(created_at) - Date.now()) < 120_000);
    }
    const [, again = ''] = sent;
    const answer = await own.redeliver(again);
    assert.deepEqual([answer.status, answer.json.data], [202, { message_id: again }]);
    const payloads = await own.payloads(6);
    assert.equal(own.receiver.received.at(-1)?.id, again);
    assert.equal(new Set(payloads.map((one) => JSON.stringify(one))).size, 5, 'the same body');
    assert.equal((await own.deliveries()).length, 5);
    assert.deepEqual((await own.redeliver('msg_unknown')).status, 404);
  });

  test('after a rotation both secrets sign, until the old ones are revoked', async (t) => {
    const own = await endpointOf(t, await callerIn('rotated'), '*');
    const { received } = own.receiver;
    const secrets = [own.secret];
    const signedBy = async (): Promise<boolean[]> => {
      const count = received.length;
      await own.test();
      await waitFor('a test', () => received.length > count);
      const last = received.at(-1) as (typeof received)[number];
      return secrets.map((secret) => {
        try {
          return verified(last, secret).type === 'webhook.test';
        } catch (error) {
          assert.match(String(error), /No matching signature/);
          return false;
        }
      });
    };
    secrets.push(await own.rotate());
    assert.deepEqual(await signedBy(), [true, true]);
    secrets.push(await own.rotate({ revoke_old: true }));
    assert.deepEqual(await signedBy(), [false, false, true]);
  });

  test('what waits when an endpoint is disabled is sent when it is enabled, what comes meanwhile is not', async (t) => {
    const by = await callerIn('paused');
    const own = await endpointOf(t, by, 'mastery.reached');
    own.receiver.answerWith(500);
    await master(by, 'before');
    await waitFor('a try that failed', async () => (await own.deliveries())[0]?.tries === 1);
    const [failed] = await own.deliveries();
    assert.deepEqual([failed.status, failed.last_status], ['pending', 500]);
    assert.ok(Date.parse(failed.next_try_at) > Date.parse(failed.created_at));
    const disabled = (await own.patch({ enabled: false })).json.data;
    assert.deepEqual([disabled.enabled, disabled.disabled_reason], [false, 'request']);
    own.receiver.answerWith(204);
    await master(by, 'meanwhile');
    await handedOut();
    const nextTry = async (): Promise<number> =>
      Number(await redis.zscore(nextDeliveriesKey, `paused:${own.id}`));
    await waitFor('a look at the disabled endpoint', async () => (await nextTry()) > Date.now() + 10_000);
    assert.equal(own.receiver.received.length, 1);
    assert.equal((await own.patch({ enabled: true })).json.data.enabled, true);
    assert.ok((await nextTry()) <= Date.now(), 'it is looked at again at once');
    await master(by, 'afterwards');
    await own.payloads(3);
    await own.settled();
    const users = own.receiver.received.map(({ text }) => JSON.parse(text).data.user_id);
    assert.deepEqual(new Set(users), new Set(['before', 'afterwards']));
    assert.equal((await own.deliveries()).length, 2);
  });

  test('a deleted endpoint is sent nothing more, and nothing is kept of it', async (t) => {
    const by = await callerIn('deleted');
    const [own, other] = [await endpointOf(t, by, '*'), await endpointOf(t, by, '*')];
    own.receiver.answerWith(500);
    await master(by, 'ada');
    await waitFor('a try that failed', async () => (await own.deliveries())[0]?.tries === 1);
    assert.equal((await ask(by, 'DELETE', own.at())).status, 200);
    await master(by, 'ben');
    await other.payloads(2);
    await handedOut();
    assert.equal(own.receiver.received.length, 1);
    assert.deepEqual(await redis.keys(`${messagesPrefix(own.id)}*`), []);
    assert.equal(await redis.zscore(nextDeliveriesKey, `deleted:${own.id}`), null);
  });

  test('a goal is told of when it is reached, and when it is at risk', async (t) => {
    const by = await callerIn('goals');
    const own = await endpointOf(t, by, 'goal.reached', 'goal.at_risk');
    for (const [i, [type, target_score]] of (
      [
        ['goal.reached', 400],
        ['goal.at_risk', 1600],
      ] as const
    ).entries()) {
      const user_id = `learner-${target_score}`;
      // With fewer answers a total says too little to alert anybody.
      for (const _ of indices(goalConstants.baselineAnswers))
        await by.track({ user_id, skill_id: 'algebra', is_correct: target_score === 400 });
      assert.equal((await ask(by, 'PUT', `goals/${user_id}`, { target_score })).status, 200);
      const payload = (await own.payloads(i + 1)).at(-1);
      const { current_total, predicted_total, goal_probability, ...goal } = payload?.data ?? {};
      assert.deepEqual([payload?.type, goal], [type, { user_id, target_score, target_date: null }]);
      const { json } = await by.get(`/api/v1/predictions/${user_id}?days=365`);
      const { data } = json;
      assert.deepEqual(
        [current_total, predicted_total],
        [data.current_total, data.predicted_total_in_365_days],
        'as the forecast of callers',
      );
      assert.ok(typeof goal_probability === 'number');
    }
  });

  test('a finished erasure is told of without the learner, whose messages are gone', async (t) => {
    const by = await callerIn('erased');
    const own = await endpointOf(t, by, '*');
    await master(by, 'to-be-erased');
    await own.payloads(1);
    await own.settled();
    const learners = own.receiver.received[0]?.id ?? '';
    assert.ok(parseLearnerHash(learners));
    const { json } = await ask(by, 'DELETE', 'learners/to-be-erased');
    const [, payload] = await own.payloads(2);
    assert.deepEqual(
      [payload?.type, payload?.data],
      ['erasure.completed', { erasure_id: json.data.erasure_id }],
    );
    const [, told] = own.receiver.received;
    assert.doesNotMatch(`${told?.text}`, /to-be-erased/);
    assert.equal(parseLearnerHash(told?.id ?? ''), null);
    await erasureDone(by, json.data.status_url);
    assert.deepEqual(
      (await own.deliveries()).map((one) => one.message_id),
      [told?.id],
    );
    assert.deepEqual((await own.redeliver(learners)).status, 404);
  });

  test('a model that a fit publishes, and a roll back, are told of', async (t) => {
    const by = await callerIn('fitted');
    const own = await endpointOf(t, by, 'model.published');
    await storeAnswers(clickhouse, madeAnswers('fitted', bigSkills.slice(0, 1), 8, 5));
    const { redisUrl: REDIS_URL, clickhouseUrl: CLICKHOUSE_URL } = service;
    const env = { REDIS_URL, CLICKHOUSE_URL, DATA_DIR: service.dataDir };
    for (const args of [[], ['--back']]) {
      const { code, err } = await runCommand('fit', env, '--tenant', 'fitted', ...args);
      assert.equal(code, 0, err);
    }
    const versions = (await own.payloads(2)).map(({ type, data }) => [type, data.version, data.based_on]);
    assert.deepEqual(versions, [
      ['model.published', 1, 0],
      ['model.published', 0, 1],
    ]);
  });
});

test('what was sent is counted', async () => {
  const outcomes = ['delivered', 'failed', 'given_up'];
  const [delivered = 0, failed = 0, givenUp] = await Promise.all(
    outcomes.map((outcome) => metric(`skilltrace_webhooks_total{outcome="${outcome}"`)),
  );
  assert.ok(delivered >= 22 && failed >= 2, `${delivered} ${failed}`);
  assert.deepEqual([givenUp, await metric('skilltrace_webhook_events_waiting')], [0, 0]);
});
