/** TypeScript types of the client, generated from the schemas that validate requests and describe responses. */
import Type, { type TProperties, type TSchema } from 'typebox';
import { KeyChange, NewKey, Tenant } from '../../../src/contracts/access/keys.js';
import { LearningEvent, LearningEventResult } from '../../../src/contracts/answers/events.js';
import { ManualParameters, SkillRequest } from '../../../src/contracts/catalogue/skills.js';
import { SettingsRequest } from '../../../src/contracts/catalogue/time-zones.js';
import { GoalBody } from '../../../src/contracts/learners/goals.js';
import { GroupBody, MembersBody, ProfileBody, ProfilesBody } from '../../../src/contracts/learners/groups.js';
import * as access from '../../../src/contracts/responses/access.js';
import * as attempts from '../../../src/contracts/responses/attempts.js';
import * as classes from '../../../src/contracts/responses/classes.js';
import * as erasures from '../../../src/contracts/responses/erasures.js';
import * as groups from '../../../src/contracts/responses/groups.js';
import * as learners from '../../../src/contracts/responses/learners.js';
import * as mastery from '../../../src/contracts/responses/mastery.js';
import * as models from '../../../src/contracts/responses/models.js';
import * as predictions from '../../../src/contracts/responses/predictions.js';
import { routeResponses } from '../../../src/contracts/responses/route-responses.js';
import * as settings from '../../../src/contracts/responses/settings.js';
import * as shared from '../../../src/contracts/responses/shared-schemas.js';
import * as skills from '../../../src/contracts/responses/skills.js';
import * as statistics from '../../../src/contracts/responses/statistics.js';
import * as webhooks from '../../../src/contracts/responses/webhooks.js';
import { Id, StoredId } from '../../../src/contracts/schema/ids.js';
import { webhookTypes } from '../../../src/contracts/webhooks/webhook-events.js';
import {
  EventTypes,
  NewWebhook,
  RotationRequest,
  WebhookChange,
} from '../../../src/contracts/webhooks/webhooks.js';
import { MappingRequest, XapiMapping } from '../../../src/contracts/xapi/mapping.js';
import { distinct } from '../../../src/lists.js';
import { KeyQuery } from '../../../src/services/access/manage-keys.js';
import { ClassMasteryRequest } from '../../../src/services/classes/read-class-mastery.js';
import { GroupReadQuery } from '../../../src/services/classes/read-group.js';
import {
  ClassForecastRequest,
  PredictionQuery,
  WhatIfRequest,
} from '../../../src/services/forecasts/forecast-scores.js';
import { NextItemsRequest } from '../../../src/services/forecasts/next-items.js';
import { GroupsQuery } from '../../../src/services/groups/manage-groups.js';
import { LearnersQuery } from '../../../src/services/learners/list-learners.js';
import { VelocityQuery } from '../../../src/services/learners/read-velocity.js';
import { CoverageQuery, ReliabilityQuery } from '../../../src/services/models/model-quality.js';
import { RollbackRequest } from '../../../src/services/models/model-versions.js';
import { HistoryQuery } from '../../../src/services/operations/live-history.js';
import { LiveQuery } from '../../../src/services/operations/live-stream.js';
import { PageQuery } from '../../../src/services/paging/pages.js';
import type { Schema } from '../http/description.js';

const propertiesOf = (schema: TSchema): TProperties => (schema as unknown as Type.TObject).properties;
const bodyOf = (route: string, status: number): TSchema => routeResponses[route]?.bodies[status] as TSchema;
/** Fields with a default are required in the service, but optional for the caller. */
const query = (schema: Type.TObject): TSchema => Type.Partial(schema);

/** A response that differs only in the field `status` when it fails. */
const report = (passing: TSchema, failing: TSchema): TSchema => {
  const status = Type.Union([passing, failing].map((one) => propertiesOf(one).status as TSchema));
  return Type.Object({ ...propertiesOf(passing), status });
};
const probe = (route: string): TSchema => report(bodyOf(route, 200), bodyOf(route, 503));
const healthData = (status: number): TSchema =>
  propertiesOf(bodyOf('GET /api/v1/health', status)).data as TSchema;

const sentParameters = Type.Object({
  ...ManualParameters.properties.parameters.properties,
  source: Type.Enum(['default', 'fitted', 'manual']),
});
const SkillSetting = Type.Object({
  ...SkillRequest.properties,
  parameters: Type.Optional(Type.Union([Type.Partial(sentParameters), Type.Null()])),
});

const sent: Readonly<Record<string, TSchema>> = {
  ...{ Answer: LearningEvent, GoalSetting: GoalBody, SkillSetting, ClassRequest: ClassForecastRequest },
  ...{ ClassMasteryRequest, Plan: WhatIfRequest, NextItemsRequest, WebhookSetting: NewWebhook },
  ...{ WebhookChange, SecretRotation: RotationRequest, KeySetting: NewKey, KeyChange },
  SettingsChange: SettingsRequest,
  ...{ XapiMappingSetting: MappingRequest, Rollback: RollbackRequest },
  ...{ PredictionQuery: query(PredictionQuery), VelocityQuery: query(VelocityQuery) },
  ...{ CoverageQuery: query(CoverageQuery) },
  ...{ ReliabilityQuery: query(ReliabilityQuery), LearnersQuery: query(LearnersQuery), LiveQuery },
  ...{ GroupSetting: GroupBody, MemberChange: MembersBody, ProfileSetting: ProfileBody },
  ...{ ProfilesRequest: ProfilesBody, GroupsQuery: query(GroupsQuery) },
  GroupReadQuery: query(GroupReadQuery),
  HistoryQuery: query(HistoryQuery),
  ...{ PageQuery: query(PageQuery), KeyQuery: query(KeyQuery) },
};

/** An optional schema is a copy: only its description identifies the type. */
const texts = { Id, StoredId, Time: shared.Time, Day: shared.Day, Tenant };
const textNames = new Map(
  Object.entries<Schema>(texts).map(([name, { description }]) => [description, name]),
);

const received: Readonly<Record<string, TSchema>> = {
  ...texts,
  ...{ ErrorObject: shared.ErrorObject, AnswerResult: LearningEventResult },
  ...{ BatchResult: attempts.BatchResult, Interval: predictions.SectionInterval },
  ...{ ConfidenceIntervals: predictions.Intervals, GoalTracking: predictions.GoalTracking },
  ...{ Scores: predictions.Scores, Practice: predictions.Practice, Prediction: predictions.Prediction },
  ...{ ClassPredictions: predictions.ClassPredictions, WhatIf: predictions.WhatIf },
  ...{ NextItems: predictions.NextItems, LearnerSkill: mastery.LearnerSkill, Mastery: mastery.Mastery },
  ...{ ClassMastery: mastery.ClassMastery, Parameters: skills.Parameters },
  ...{ SkillMastery: mastery.SkillMastery, Velocity: mastery.Velocity, Goal: learners.Goal },
  ...{ DeletedGoal: learners.DeletedGoal, ListedSkill: skills.ListedSkill, Skill: skills.Skill },
  ...{ SkillPage: skills.SkillPage, DeletedSkill: skills.DeletedSkill },
  ...{ Group: groups.Group, GroupPage: groups.GroupPage, ChangedMembers: groups.ChangedMembers },
  ...{ GroupSkill: classes.GroupSkill, GroupSkills: classes.GroupSkills },
  ...{ GroupSummary: classes.GroupSummary },
  ...{ DeletedGroup: groups.DeletedGroup, Profile: groups.Profile, Profiles: groups.Profiles },
  ...{ ListedLearner: learners.ListedLearner, LearnerPage: learners.LearnerPage },
  ...{ SkillStatisticsPage: statistics.SkillStatisticsPage, SkillStatistics: statistics.SkillStatistics },
  ...{ SkillItem: statistics.SkillItem, SkillItemPage: statistics.SkillItemPage },
  ...{ Attempt: attempts.Attempt, AttemptPage: attempts.AttemptPage, SkillAnswer: attempts.SkillAnswer },
  ...{ SkillAnswerPage: attempts.SkillAnswerPage, TakenBack: attempts.RetractedAttempt },
  ...{ BegunErasure: erasures.AcceptedErasure, ListedErasure: erasures.ListedErasure },
  ...{ Erasure: erasures.Erasure, EventTypes, OwnKey: access.OwnKey, Key: access.Key },
  Settings: settings.Settings,
  ...{ CreatedKey: access.CreatedKey, KeyPage: access.KeyPage, ErasurePage: erasures.ErasurePage },
  ...{ ParkedPage: access.ParkedPage, Redriven: access.RedriveResult, LastAudit: access.LastAudit },
  ...{
    StartedAudit: access.StartedAudit,
    ActivityPage: access.ActivityPage,
    LiveHistory: access.LiveHistory,
  },
  ...{ Deployment: access.Deployment, Webhook: webhooks.Webhook },
  ...{ WebhookWithSecret: webhooks.WebhookWithSecret, WebhookPage: webhooks.WebhookPage },
  ...{ DeletedWebhook: webhooks.DeletedWebhook, SentMessage: webhooks.SentMessage },
  ...{ Delivery: webhooks.Delivery, DeliveryPage: webhooks.DeliveryPage },
  SkillEvent: webhooks.webhookDescriptions['mastery.reached'].data,
  GoalEvent: webhooks.webhookDescriptions['goal.reached'].data,
  WebhookData: Type.Object(
    Object.fromEntries(webhookTypes.map((type) => [type, webhooks.webhookDescriptions[type].data])),
    { description: 'Data of the messages that endpoints receive, by type' },
  ),
  ...{ ModelVersionPage: models.ModelVersionPage, ModelVersion: models.ModelVersion },
  ...{ UsedVersion: models.ActiveVersion, Reliability: models.Reliability, Coverage: models.Coverage },
  ...{ LiveFigures: access.LiveFigures, XapiMapping },
  Health: report(healthData(200), healthData(503)),
  Liveness: probe('GET /livez'),
  Readiness: probe('GET /readyz'),
};

const names = new Map<unknown, string>(Object.entries(received).map(([name, schema]) => [schema, name]));

/** Translates a pattern for field names, which has letters, groups of alternatives and numbers. */
function templateOf(pattern: string): string {
  if (pattern === '^.*$') return 'string';
  const toUnion = (_: string, choices: string): string =>
    `\${${choices.replaceAll(/\w+/g, "'$&'").replaceAll('|', ' | ')}}`;
  const text = pattern.replace(/^\^|\$$/g, '').replace(/\(([\w|]+)\)/g, toUnion);
  return `\`${text.replace(/\\d\{1,3\}/g, `\${number}`)}\``;
}

/** An optional field of a request can also be undefined: JSON omits it. */
function fieldsOf({ properties = {}, required = [], patternProperties = {} }: Schema, isSent: boolean) {
  const fields = Object.entries(properties).map(([name, schema]) => {
    const isRequired = required.includes(name);
    const type = `${typeOf(schema, isSent)}${isSent && !isRequired ? ' | undefined' : ''}`;
    const key = /^\w+$/.test(name) ? name : JSON.stringify(name);
    return `${fieldComment(schema)}readonly ${key}${isRequired ? '' : '?'}: ${type};\n`;
  });
  const patterns = Object.entries(patternProperties).map(
    ([pattern, schema]) => `readonly [field: ${templateOf(pattern)}]: ${typeOf(schema, isSent)};\n`,
  );
  return `{\n${[...fields, ...patterns].join('')}}`;
}

const comment = (text: string | undefined): string => (text === undefined ? '' : `/** ${text} */\n`);
const commentOf = ({ description, anyOf }: Schema): string => comment(description ?? anyOf?.[0]?.description);
/** A named type has its comment at its declaration. */
const fieldComment = (schema: Schema): string =>
  nameOf(schema.anyOf?.[0] ?? schema) === undefined ? commentOf(schema) : '';

const union = (types: readonly string[]): string => distinct(types).join(' | ');

const nameOf = (schema: Schema): string | undefined =>
  names.get(schema) ?? (schema.type === 'string' ? textNames.get(schema.description ?? '') : undefined);

/** Types that other types extend. The first one that fits is used. */
const bases = [
  ...['LearnerSkill', 'Attempt', 'ListedSkill', 'Webhook', 'Key', 'OwnKey', 'Scores', 'ListedErasure'],
  ...['PageQuery', 'KeyChange'],
].map((name) => [name, fieldsBy({ ...sent, ...received }[name] as Schema)] as const);

/** The schema of each field, as JSON. */
function fieldsBy({ properties = {} }: Schema): ReadonlyMap<string, string> {
  return new Map(Object.entries(properties).map(([name, schema]) => [name, JSON.stringify(schema)]));
}

/** An object type. It extends a named type if it has all fields of that type. */
function objectOf(schema: Schema, isSent: boolean): string {
  const { skill_id, skill_ids, ...others } = schema.properties ?? {};
  if (isSent && skill_id !== undefined && skill_ids !== undefined)
    return `QuestionSkills & ${objectOf({ ...schema, properties: others }, isSent)}`;
  const fields = fieldsBy(schema);
  const [name, inherited] =
    bases.find(
      ([, base]) => base.size < fields.size && [...base].every(([name, text]) => fields.get(name) === text),
    ) ?? [];
  if (inherited === undefined) return fieldsOf(schema, isSent);
  const own = Object.entries(schema.properties ?? {}).filter(([field]) => !inherited.has(field));
  return `${name} & ${fieldsOf({ ...schema, properties: Object.fromEntries(own) }, isSent)}`;
}

const typeOf = (schema: Schema, isSent: boolean): string => nameOf(schema) ?? shapeOf(schema, isSent);

/** Members of a union; an optional schema can contain another union. */
const choicesOf = (schema: Schema): readonly Schema[] =>
  nameOf(schema) === undefined && schema.anyOf !== undefined ? schema.anyOf.flatMap(choicesOf) : [schema];

function shapeOf(schema: Schema, isSent: boolean): string {
  if (schema.anyOf !== undefined)
    return union(schema.anyOf.flatMap(choicesOf).map((one) => typeOf(one, isSent)));
  if (schema.enum !== undefined) return union(schema.enum.map((value) => JSON.stringify(value)));
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const { type = '' } = schema;
  if (type === 'object') return objectOf(schema, isSent);
  if (type === 'array') return `readonly (${typeOf(schema.items as Schema, isSent)})[]`;
  if (type === 'integer') return 'number';
  if (['string', 'number', 'boolean', 'null'].includes(type)) return type;
  throw new Error(`no type for ${JSON.stringify(schema)}`);
}

const declare = (schemas: Readonly<Record<string, Schema>>, isSent: boolean): string[] =>
  Object.entries(schemas).map(
    ([name, schema]) => `${commentOf(schema)}export type ${name} = ${shapeOf(schema, isSent)};\n`,
  );

const questionSkills = `
/** The skills that a question needs: one in \`skill_id\`, or 1 to 10 distinct ids in \`skill_ids\`. */
export type QuestionSkills =
  | { readonly skill_id: Id; readonly skill_ids?: null | undefined }
  | { readonly skill_id?: null | undefined; readonly skill_ids: readonly Id[] };
`;

const webhookMessage = `
/** Messages that endpoints receive; later versions may send other types and fields */
export type WebhookMessage = {
  [Type in keyof WebhookData]: {
    readonly type: Type;
    readonly timestamp: Time;
    readonly data: WebhookData[Type];
  };
}[keyof WebhookData];
`;

/** Text of src/client/types.ts, not formatted. */
export const clientTypes = (): string =>
  [
    '/** Types of API requests and responses. Generated by test/support/client/client-types.ts from the schemas of the service. */\n',
    questionSkills,
    ...declare(sent as Readonly<Record<string, Schema>>, true),
    ...declare(received as Readonly<Record<string, Schema>>, false),
    webhookMessage,
  ].join('\n');
