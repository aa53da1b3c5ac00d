import { withEventId } from './answer.js';
import { parsed, SkilltraceError } from './errors.js';
import { type AllQuery, entriesOf, escaped, Operations, type WriteOptions } from './operations.js';
import type { CallOptions } from './transport.js';
import type * as Api from './types.js';

export interface ExplainOptions extends CallOptions {
  readonly explain?: boolean | undefined;
  /** Answers to explain, 1 to 50. */
  readonly steps?: number | undefined;
}

/** A line of an export; its fields depend on the type. */
export interface ExportLine {
  readonly type: string;
  readonly [field: string]: unknown;
}

type User = [userId: string];
type Skill = [skillId: string];
type Webhook = [webhookId: string];
type Key = [keyId: string];

/** A write that creates something each time. The client repeats it only if the first try certainly had no effect. */
const once = { isIdempotent: false };

/** All operations of the API by their names, except those for xAPI clients. All reject with a SkilltraceError. */
export class Calls extends Operations {
  readonly #count = this.post<[answer: Api.Answer], Api.AnswerResult>('/track-answer');
  readonly #countAll = this.post<[batch: object], Api.BatchResult>('/track-answers');

  /** Counts one answer now. An answer without an event id gets one. */
  async trackAnswer(answer: Api.Answer, options?: CallOptions): Promise<Api.AnswerResult> {
    return this.#count(withEventId(answer), options);
  }

  /** Counts 1 to 1000 answers now, each with its own result. Rejects if none was counted. */
  async trackAnswers(answers: readonly Api.Answer[], options?: CallOptions): Promise<Api.BatchResult> {
    return this.#countAll({ events: answers.map(withEventId) }, options);
  }

  /** Scores now, in 30 days and in `days`. */
  readonly predictions = this.get<User, Api.Prediction, Api.PredictionQuery>('/predictions/{}');
  /** Predictions of up to 500 learners, each with its own result. */
  readonly classPredictions = this.post<[request: Api.ClassRequest], Api.ClassPredictions>('/predictions');
  /** The forecast under a plan of practice. */
  readonly whatIf = this.post<[userId: string, plan: Api.Plan], Api.WhatIf>('/predictions/{}/what-if');
  /** Which of up to 1000 questions to ask the learner next, the best first, and why. */
  readonly nextItems = this.post<[userId: string, request: Api.NextItemsRequest], Api.NextItems>(
    '/next-items/{}',
  );
  /** Mastery of all skills, or of a page of skills with `limit` or `cursor`. */
  readonly mastery = this.get<User, Api.Mastery, Api.PageQuery>('/mastery/{}');
  /** Mastery of up to 500 learners, each with its own result. */
  readonly classMastery = this.post<[request: Api.ClassMasteryRequest], Api.ClassMastery>('/mastery');
  /** Mastery of one skill, and with `explain` the reasons. */
  readonly skillMastery = this.get<[userId: string, skillId: string], Api.SkillMastery, ExplainOptions>(
    '/mastery/{}/{}',
  );
  /** A page of the learner's answers on one skill, newest first. */
  readonly skillAnswers = this.get<[userId: string, skillId: string], Api.SkillAnswerPage, Api.PageQuery>(
    '/mastery/{}/{}/history',
  );
  /** The rate of change of mastery. */
  readonly velocity = this.get<User, Api.Velocity, Api.VelocityQuery>('/velocity/{}');
  readonly goal = this.getTagged<User, Api.Goal>('/goals/{}');
  readonly setGoal = this.put<[userId: string, goal: Api.GoalSetting], Api.Goal>('/goals/{}');
  readonly deleteGoal = this.remove<User, Api.DeletedGoal, WriteOptions>('/goals/{}');
  /** A page of the learners whose ids begin with `prefix`; of all learners without a prefix. */
  readonly learners = this.get<[], Api.LearnerPage, Api.LearnersQuery>('/learners');
  /** A page of the learner's answers, newest first. */
  readonly attempts = this.get<User, Api.AttemptPage, Api.PageQuery>('/learners/{}/attempts');

  /** All of the learner's answers, newest first. */
  allAttempts(userId: string, query: AllQuery = {}): AsyncGenerator<Api.Attempt, void, undefined> {
    return entriesOf(
      (cursor) => this.attempts(userId, { ...query, cursor }),
      ({ attempts }) => attempts,
    );
  }

  /** Retracts a wrongly reported answer. */
  readonly takeBack = this.remove<[userId: string, eventId: string], Api.TakenBack>(
    '/learners/{}/attempts/{}',
  );

  /** All stored data of the learner. Rejects with BAD_RESPONSE if the export is truncated. */
  async *exportLearner(userId: string, options?: CallOptions): AsyncGenerator<ExportLine, void, undefined> {
    const request = { method: 'GET', path: `/api/v1/learners/${escaped(userId)}/export` } as const;
    let last: ExportLine | undefined;
    for await (const text of this.transport.lines(request, options)) {
      last = parsed(text) as ExportLine | undefined;
      if (last !== undefined) yield last;
    }
    if (last?.type === 'end') return;
    throw new SkilltraceError('BAD_RESPONSE', 'The export is not complete', { status: 200 });
  }

  /** Begins to erase the learner everywhere; `erasure` reports the progress. */
  readonly eraseLearner = this.remove<User, Api.BegunErasure>('/learners/{}');
  readonly erasure = this.get<[erasureId: string], Api.Erasure>('/erasures/{}');
  /** A page of the tenant's erasures, newest first. */
  readonly erasures = this.get<[], Api.ErasurePage, Api.PageQuery>('/erasures');

  /** A page of the skills with settings or answers. */
  readonly skills = this.get<[], Api.SkillPage, Api.PageQuery>('/skills');
  readonly skill = this.getTagged<Skill, Api.Skill>('/skills/{}');
  /** Replaces the whole entry of the catalogue. */
  readonly setSkill = this.put<[skillId: string, skill: Api.SkillSetting], Api.Skill>('/skills/{}');
  /** Removes a skill with few answers from the known skills. */
  readonly deleteSkill = this.remove<Skill, Api.DeletedSkill, WriteOptions>('/skills/{}');
  /** Results of all learners on each skill with answers. */
  readonly skillStatistics = this.get<[], Api.SkillStatisticsPage, Api.PageQuery>('/skill-statistics');
  /** Results of all learners on one skill, answer by answer and week by week. */
  readonly statisticsOfSkill = this.get<Skill, Api.SkillStatistics>('/skills/{}/statistics');
  /** A page of the items of a skill, the hardest first. */
  readonly skillItems = this.get<Skill, Api.SkillItemPage, Api.PageQuery>('/skills/{}/items');

  /** How xAPI statements are converted to answers. */
  readonly xapiMapping = this.getTagged<[], Api.XapiMapping>('/xapi-mapping');
  /** Replaces the whole mapping; missing fields get their defaults. */
  readonly setXapiMapping = this.put<[mapping: Api.XapiMappingSetting], Api.XapiMapping>('/xapi-mapping');

  /**
   * Registers a URL for events. Only this result has the secret that signs them. If the result is lost, the endpoint can
   * exist all the same.
   */
  readonly createWebhook = this.post<[webhook: Api.WebhookSetting], Api.WebhookWithSecret>('/webhooks', once);
  /** A page of the tenant's endpoints. */
  readonly webhooks = this.get<[], Api.WebhookPage, Api.PageQuery>('/webhooks');

  /** All of the tenant's endpoints. */
  allWebhooks(query: AllQuery = {}): AsyncGenerator<Api.Webhook, void, undefined> {
    return entriesOf(
      (cursor) => this.webhooks({ ...query, cursor }),
      ({ webhooks }) => webhooks,
    );
  }

  readonly webhook = this.get<Webhook, Api.Webhook>('/webhooks/{}');
  /** Changes only the fields that are present. */
  readonly changeWebhook = this.patch<[webhookId: string, change: Api.WebhookChange], Api.Webhook>(
    '/webhooks/{}',
  );
  readonly deleteWebhook = this.remove<Webhook, Api.DeletedWebhook>('/webhooks/{}');
  /** A new secret. The client retries this call: a secret in a lost response would be useless. */
  readonly rotateSecret = this.post<
    [webhookId: string, rotation?: Api.SecretRotation],
    Api.WebhookWithSecret
  >('/webhooks/{}/rotate-secret');
  /** Sends the event `webhook.test` to the endpoint. */
  readonly testWebhook = this.trigger<Webhook, Api.SentMessage>('/webhooks/{}/test', once);
  /** A page of the messages of seven days, newest first. */
  readonly deliveries = this.get<Webhook, Api.DeliveryPage, Api.PageQuery>('/webhooks/{}/deliveries');

  /** All messages of seven days, newest first. */
  allDeliveries(webhookId: string, query: AllQuery = {}): AsyncGenerator<Api.Delivery, void, undefined> {
    return entriesOf(
      (cursor) => this.deliveries(webhookId, { ...query, cursor }),
      ({ deliveries }) => deliveries,
    );
  }

  /** Sends a message again, under its id. */
  readonly redeliver = this.trigger<[webhookId: string, messageId: string], Api.SentMessage>(
    '/webhooks/{}/deliveries/{}/redeliver',
  );

  /** A page of the changes of the model, newest first. */
  readonly modelVersions = this.get<[], Api.ModelVersionPage, Api.PageQuery>('/model/versions');
  /** A page of a version's skills. */
  readonly modelVersion = this.get<[version: number], Api.ModelVersion, Api.PageQuery>('/model/versions/{}');
  /** Activates an earlier version again. */
  readonly rollBack = this.post<[rollback: Api.Rollback], Api.UsedVersion>('/model/rollback');
  /** The share of right answers by predicted probability. */
  readonly reliability = this.get<[], Api.Reliability, Api.ReliabilityQuery>('/model/reliability');
  /** How often the intervals of served forecasts contained the result. */
  readonly coverage = this.get<[], Api.Coverage>('/model/coverage');

  /** What the client's own key may do. */
  readonly ownKey = this.get<[], Api.OwnKey>('/key');
  /** A page of the tenant's keys, for operators of `tenant` or of all tenants, newest first. */
  readonly keys = this.get<[], Api.KeyPage, Api.KeyQuery>('/keys');

  /** All of these keys, newest first. */
  allKeys(
    query: AllQuery & Partial<Pick<Api.KeyQuery, 'tenant'>> = {},
  ): AsyncGenerator<Api.Key, void, undefined> {
    return entriesOf(
      (cursor) => this.keys({ ...query, cursor }),
      ({ keys }) => keys,
    );
  }

  /** Only this result has the key. If the result is lost, the key can exist all the same. */
  readonly createKey = this.post<[key?: Api.KeySetting], Api.CreatedKey>('/keys', once);
  /** Sets the quota of a key. */
  readonly changeKey = this.patch<[keyId: string, change: Api.KeyChange], Api.Key>('/keys/{}');
  /** Works for the client's own key, too: the service rejects its next calls within 5 s. */
  readonly revokeKey = this.remove<Key, Api.Key>('/keys/{}');

  /** A page of the dead-letter rows, which ClickHouse rejected. */
  readonly parked = this.get<[], Api.ParkedPage, Api.PageQuery>('/parked');
  /** Puts all dead-letter rows back into the queue. */
  readonly redrive = this.trigger<[], Api.Redriven>('/parked/redrive');
  /** The result of the last audit. */
  readonly audits = this.get<[], Api.LastAudit>('/audits');
  /** The deployment and the versions of its parts. */
  readonly deployment = this.get<[], Api.Deployment>('/deployment');

  /** Figures of the service each second, until the caller leaves the loop or the service ends the stream. */
  async *live(query: Api.LiveQuery & CallOptions = {}): AsyncGenerator<Api.LiveFigures, void, undefined> {
    const { signal, ...rest } = query;
    const request = { method: 'GET', path: '/api/v1/live', query: rest } as const;
    for await (const line of this.transport.lines(request, { signal }))
      if (line.startsWith('data: ')) yield JSON.parse(line.slice('data: '.length)) as Api.LiveFigures;
  }

  readonly #health = this.probe<{ readonly data: Api.Health }>('/api/v1/health');

  /** State of the service's parts, also when one of them is down. */
  async health(options?: CallOptions): Promise<Api.Health> {
    return (await this.#health(options)).data;
  }

  /** Whether the process is alive. */
  readonly livez = this.probe<Api.Liveness>('/livez');
  /** Whether the service accepts requests. */
  readonly readyz = this.probe<Api.Readiness>('/readyz');

  /** Figures in the Prometheus text format. */
  async metrics(options?: CallOptions): Promise<string> {
    return (await this.transport.call({ method: 'GET', path: '/metrics' }, options)).text;
  }
}
