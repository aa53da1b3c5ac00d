import {
  CallBuilder,
  escapeId,
  iterateEntries,
  type ListingQuery,
  type WriteOptions,
} from './call-builder.js';
import { SkilltraceError, tryParseJson } from './errors.js';
import { withEventId } from './identified-answer.js';
import type { CallOptions } from './transport.js';
import type * as Api from './types.js';

export interface ExplainOptions extends CallOptions {
  readonly explain?: boolean | undefined;
  /** Answers to explain, 1 to 50. */
  readonly steps?: number | undefined;
}

/** Fields depend on the type. */
export interface ExportLine {
  readonly type: string;
  readonly [field: string]: unknown;
}

type User = [userId: string];
type Skill = [skillId: string];
type Group = [groupId: string];
type Webhook = [webhookId: string];
type Key = [keyId: string];

/** For writes that create an entry each time they are sent. */
const nonIdempotent = { isIdempotent: false };

/** All API operations except those for xAPI clients. They reject with SkilltraceError. */
export class ApiCalls extends CallBuilder {
  readonly #sendAnswer = this.post<[answer: Api.Answer], Api.AnswerResult>('/track-answer');
  readonly #sendBatch = this.post<[batch: object], Api.BatchResult>('/track-answers');

  /** Adds a missing event id. */
  async trackAnswer(answer: Api.Answer, options?: CallOptions): Promise<Api.AnswerResult> {
    return this.#sendAnswer(withEventId(answer), options);
  }

  /** 1 to 1000 answers, with a result for each. Rejects if none was counted. */
  async trackAnswers(answers: readonly Api.Answer[], options?: CallOptions): Promise<Api.BatchResult> {
    return this.#sendBatch({ events: answers.map(withEventId) }, options);
  }

  /** Scores now, in 30 days and in `days`. */
  readonly predictions = this.get<User, Api.Prediction, Api.PredictionQuery>('/predictions/{}');
  /** Up to 500 learners, with a result for each. */
  readonly classPredictions = this.post<[request: Api.ClassRequest], Api.ClassPredictions>('/predictions');
  readonly whatIf = this.post<[userId: string, plan: Api.Plan], Api.WhatIf>('/predictions/{}/what-if');
  /** Ranks up to 1000 questions, best first. */
  readonly nextItems = this.post<[userId: string, request: Api.NextItemsRequest], Api.NextItems>(
    '/next-items/{}',
  );
  /** All skills, or a page with `limit` or `cursor`. */
  readonly mastery = this.get<User, Api.Mastery, Api.PageQuery>('/mastery/{}');
  /** Up to 500 learners, with a result for each. */
  readonly classMastery = this.post<[request: Api.ClassMasteryRequest], Api.ClassMastery>('/mastery');
  readonly skillMastery = this.get<[userId: string, skillId: string], Api.SkillMastery, ExplainOptions>(
    '/mastery/{}/{}',
  );
  /** Newest first. */
  readonly skillAnswers = this.get<[userId: string, skillId: string], Api.SkillAnswerPage, Api.PageQuery>(
    '/mastery/{}/{}/history',
  );
  readonly velocity = this.get<User, Api.Velocity, Api.VelocityQuery>('/velocity/{}');
  readonly goal = this.getWithEtag<User, Api.Goal>('/goals/{}');
  readonly setGoal = this.put<[userId: string, goal: Api.GoalSetting], Api.Goal>('/goals/{}');
  readonly deleteGoal = this.remove<User, Api.DeletedGoal, WriteOptions>('/goals/{}');
  /** Learners with ids that begin with `prefix`. */
  readonly learners = this.get<[], Api.LearnerPage, Api.LearnersQuery>('/learners');
  /** Sorted by `group_id`. */
  readonly groups = this.get<[], Api.GroupPage, Api.GroupsQuery>('/groups');
  readonly group = this.get<Group, Api.Group>('/groups/{}');
  /** Replaces the whole group, with its members. */
  readonly setGroup = this.put<[groupId: string, group: Api.GroupSetting], Api.Group>('/groups/{}');
  readonly deleteGroup = this.remove<Group, Api.DeletedGroup>('/groups/{}');
  readonly changeMembers = this.post<[groupId: string, change: Api.MemberChange], Api.ChangedMembers>(
    '/groups/{}/members',
  );
  /** Skills of a class, by need of help. */
  readonly groupSkills = this.get<Group, Api.GroupSkills, Api.GroupReadQuery>('/groups/{}/skills');
  /** Learners and skills of a class that need the teacher today. */
  readonly groupSummary = this.get<Group, Api.GroupSummary, Api.GroupReadQuery>('/groups/{}/summary');
  readonly profile = this.get<User, Api.Profile>('/learners/{}/profile');
  /** Replaces the whole profile. */
  readonly setProfile = this.put<[userId: string, profile: Api.ProfileSetting], Api.Profile>(
    '/learners/{}/profile',
  );
  /** Of up to 2,000 learners, without those that have no profile. */
  readonly profiles = this.post<[request: Api.ProfilesRequest], Api.Profiles>('/learners/profiles');
  /** Newest first. */
  readonly attempts = this.get<User, Api.AttemptPage, Api.PageQuery>('/learners/{}/attempts');

  /** Newest first. */
  allAttempts(userId: string, query: ListingQuery = {}): AsyncGenerator<Api.Attempt, void, undefined> {
    return iterateEntries(
      (cursor) => this.attempts(userId, { ...query, cursor }),
      ({ attempts }) => attempts,
    );
  }

  readonly retractAttempt = this.remove<[userId: string, eventId: string], Api.TakenBack>(
    '/learners/{}/attempts/{}',
  );

  /** Rejects with BAD_RESPONSE if the export is truncated. */
  async *exportLearner(userId: string, options?: CallOptions): AsyncGenerator<ExportLine, void, undefined> {
    const request = { method: 'GET', path: `/api/v1/learners/${escapeId(userId)}/export` } as const;
    let last: ExportLine | undefined;
    for await (const text of this.transport.streamLines(request, options)) {
      last = tryParseJson(text) as ExportLine | undefined;
      if (last !== undefined) yield last;
    }
    if (last?.type === 'end') return;
    throw new SkilltraceError('BAD_RESPONSE', 'The export ended before its last line. Request it again', {
      status: 200,
    });
  }

  /** `erasure` reports the progress. */
  readonly eraseLearner = this.remove<User, Api.BegunErasure>('/learners/{}');
  readonly erasure = this.get<[erasureId: string], Api.Erasure>('/erasures/{}');
  /** Newest first. */
  readonly erasures = this.get<[], Api.ErasurePage, Api.PageQuery>('/erasures');

  /** Skills with settings or answers. */
  readonly skills = this.get<[], Api.SkillPage, Api.PageQuery>('/skills');
  readonly skill = this.getWithEtag<Skill, Api.Skill>('/skills/{}');
  /** Replaces the whole entry. */
  readonly setSkill = this.put<[skillId: string, skill: Api.SkillSetting], Api.Skill>('/skills/{}');
  /** Removes a skill that has fewer than 20 answers. */
  readonly deleteSkill = this.remove<Skill, Api.DeletedSkill, WriteOptions>('/skills/{}');
  /** Results of all learners. */
  readonly skillStatistics = this.get<[], Api.SkillStatisticsPage, Api.PageQuery>('/skill-statistics');
  /** Results of all learners. */
  readonly statisticsOfSkill = this.get<Skill, Api.SkillStatistics>('/skills/{}/statistics');
  /** Hardest first. */
  readonly skillItems = this.get<Skill, Api.SkillItemPage, Api.PageQuery>('/skills/{}/items');

  readonly settings = this.get<[], Api.Settings>('/settings');
  /** Moves earlier answers to the days of the time zone in the background. */
  readonly setSettings = this.put<[settings: Api.SettingsChange], Api.Settings>('/settings');

  readonly xapiMapping = this.getWithEtag<[], Api.XapiMapping>('/xapi-mapping');
  /** Missing fields get their defaults. */
  readonly setXapiMapping = this.put<[mapping: Api.XapiMappingSetting], Api.XapiMapping>('/xapi-mapping');

  /** Only this result has the signing secret. If it is lost, the endpoint may exist. */
  readonly createWebhook = this.post<[webhook: Api.WebhookSetting], Api.WebhookWithSecret>(
    '/webhooks',
    nonIdempotent,
  );
  readonly webhooks = this.get<[], Api.WebhookPage, Api.PageQuery>('/webhooks');

  allWebhooks(query: ListingQuery = {}): AsyncGenerator<Api.Webhook, void, undefined> {
    return iterateEntries(
      (cursor) => this.webhooks({ ...query, cursor }),
      ({ webhooks }) => webhooks,
    );
  }

  readonly webhook = this.get<Webhook, Api.Webhook>('/webhooks/{}');
  /** Changes only the given fields. */
  readonly changeWebhook = this.patch<[webhookId: string, change: Api.WebhookChange], Api.Webhook>(
    '/webhooks/{}',
  );
  readonly deleteWebhook = this.remove<Webhook, Api.DeletedWebhook>('/webhooks/{}');
  /** Retried, because a secret in a lost response is useless. */
  readonly rotateSecret = this.post<
    [webhookId: string, rotation?: Api.SecretRotation],
    Api.WebhookWithSecret
  >('/webhooks/{}/rotate-secret');
  readonly testWebhook = this.trigger<Webhook, Api.SentMessage>('/webhooks/{}/test', nonIdempotent);
  /** Messages of seven days, newest first. */
  readonly deliveries = this.get<Webhook, Api.DeliveryPage, Api.PageQuery>('/webhooks/{}/deliveries');

  /** Messages of seven days, newest first. */
  allDeliveries(webhookId: string, query: ListingQuery = {}): AsyncGenerator<Api.Delivery, void, undefined> {
    return iterateEntries(
      (cursor) => this.deliveries(webhookId, { ...query, cursor }),
      ({ deliveries }) => deliveries,
    );
  }

  /** Sends the message again with the same id. */
  readonly redeliver = this.trigger<[webhookId: string, messageId: string], Api.SentMessage>(
    '/webhooks/{}/deliveries/{}/redeliver',
  );

  /** Changes of the model, newest first. */
  readonly modelVersions = this.get<[], Api.ModelVersionPage, Api.PageQuery>('/model/versions');
  /** Skills of the version. */
  readonly modelVersion = this.get<[version: number], Api.ModelVersion, Api.PageQuery>('/model/versions/{}');
  readonly rollBack = this.post<[rollback: Api.Rollback], Api.UsedVersion>('/model/rollback');
  readonly reliability = this.get<[], Api.Reliability, Api.ReliabilityQuery>('/model/reliability');
  /** Share of forecast intervals that contained the result. */
  readonly coverage = this.get<[], Api.Coverage, Api.CoverageQuery>('/model/coverage');

  /** Scopes and quota of the client's key. */
  readonly ownKey = this.get<[], Api.OwnKey>('/key');
  /** Newest first. Operators see the keys of `tenant`, or of all tenants; others only those of their tenant. */
  readonly keys = this.get<[], Api.KeyPage, Api.KeyQuery>('/keys');

  /** Newest first. */
  allKeys(
    query: ListingQuery & Partial<Pick<Api.KeyQuery, 'tenant'>> = {},
  ): AsyncGenerator<Api.Key, void, undefined> {
    return iterateEntries(
      (cursor) => this.keys({ ...query, cursor }),
      ({ keys }) => keys,
    );
  }

  /** Only this result has the key. If it is lost, the key may exist. */
  readonly createKey = this.post<[key?: Api.KeySetting], Api.CreatedKey>('/keys', nonIdempotent);
  /** Changes only the given fields. An empty name or note removes it. */
  readonly changeKey = this.patch<[keyId: string, change: Api.KeyChange], Api.Key>('/keys/{}');
  /** Also works for the client's key. The service rejects it within 5 s. */
  readonly revokeKey = this.remove<Key, Api.Key>('/keys/{}');

  /** Dead-letter rows. */
  readonly parked = this.get<[], Api.ParkedPage, Api.PageQuery>('/parked');
  /** Queues all dead-letter rows again. */
  readonly redrive = this.trigger<[], Api.Redriven>('/parked/redrive');
  readonly audits = this.get<[], Api.LastAudit>('/audits');
  /** `audits` reports the result. */
  readonly startAudit = this.trigger<[], Api.StartedAudit>('/audits', nonIdempotent);
  /** Changes through the API, newest first. Operators see all tenants. */
  readonly activity = this.get<[], Api.ActivityPage, Api.PageQuery>('/activity');
  readonly deployment = this.get<[], Api.Deployment>('/deployment');

  /** Figures each second, until the caller or the service ends the stream. */
  async *live(query: Api.LiveQuery & CallOptions = {}): AsyncGenerator<Api.LiveFigures, void, undefined> {
    const { signal, ...rest } = query;
    const request = { method: 'GET', path: '/api/v1/live', query: rest } as const;
    for await (const line of this.transport.streamLines(request, { signal }))
      if (line.startsWith('data: ')) yield JSON.parse(line.slice('data: '.length)) as Api.LiveFigures;
  }

  /** Means of up to 24 hours, and the busiest keys. */
  readonly liveHistory = this.get<[], Api.LiveHistory, Api.HistoryQuery>('/live/history');

  readonly #health = this.probe<{ readonly data: Api.Health }>('/api/v1/health');

  /** Also resolves when a part is down. */
  async health(options?: CallOptions): Promise<Api.Health> {
    return (await this.#health(options)).data;
  }

  readonly livez = this.probe<Api.Liveness>('/livez');
  readonly readyz = this.probe<Api.Readiness>('/readyz');

  /** Prometheus text format. */
  async metrics(options?: CallOptions): Promise<string> {
    return (await this.transport.call({ method: 'GET', path: '/metrics' }, options)).text;
  }
}
