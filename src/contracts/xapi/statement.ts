/**
 * xAPI 1.0.3 (Data, 2.2 to 2.4). Rejects everything that the specification rejects, even in unused fields.
 */
import Type, { type Static, type TProperties, type TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { IsIri, IsUuid } from 'typebox/format';
import { parseTime } from '../answers/events.js';
import { describeErrors, validationError } from '../schema/validate.js';
import { parseDurationSeconds } from './duration.js';

const exactObject = <Needed extends TProperties, More extends TProperties>(needed: Needed, more: More) =>
  Type.Object({ ...needed, ...Type.Partial(Type.Object(more)).properties }, { additionalProperties: false });
const refine = <Of extends TSchema>(of: Of, message: string, isValid: (value: Static<Of>) => boolean) =>
  Type.Refine(of, isValid, () => message);
const textWith = (wanted: string, fits: (value: string) => boolean) =>
  refine(Type.String(), `must be ${wanted}`, fits);
const recordWithKeys = <Of extends TSchema>(wanted: string, fits: (key: string) => boolean, of: Of) =>
  refine(Type.Record(Type.String(), of), `must have ${wanted} as keys`, (map) =>
    Object.keys(map).every(fits),
  );
const byObjectType = <Kind extends string, Then extends TSchema, Else extends TSchema>(
  kind: Kind,
  then: Then,
  otherwise: Else,
) => Type.Dependent(Type.Object({ objectType: Type.Literal(kind) }), then, otherwise);

const isIri = (value: string): boolean => IsIri(value) && !/[\p{Cc}\p{Cs}]/u.test(value);
const isLanguage = (value: string): boolean => /^[a-z]{1,8}(-[a-z\d]{1,8})*$/i.test(value);
export const Iri = textWith('an IRI with a scheme', isIri);
export const Uuid = textWith('a UUID', IsUuid);
const Time = textWith(
  'an RFC 3339 time, for example 2026-05-31T12:00:00Z',
  (value) => parseTime(value) !== null,
);
const Duration = textWith(
  'an ISO 8601 duration, for example PT30S',
  (value) => parseDurationSeconds(value) !== null,
);
const [text, flag, number] = [Type.String(), Type.Boolean(), Type.Number()];
const languages = recordWithKeys('language tags of RFC 5646', isLanguage, text);
export const iriRecord = <Of extends TSchema>(of: Of) => recordWithKeys('IRIs with a scheme', isIri, of);
const extensions = iriRecord(Type.Unknown());

const identifiers = {
  mbox: textWith('mailto: followed by an address', (value) =>
    /^mailto:[^\s@\p{Cs}]+@[^\s@\p{Cs}]+$/u.test(value),
  ),
  mbox_sha1sum: textWith('a SHA-1 digest in hexadecimal', (value) => /^[\da-f]{40}$/i.test(value)),
  openid: Iri,
  account: exactObject(
    { homePage: Iri, name: textWith('well-formed Unicode', (value) => value.isWellFormed()) },
    {},
  ),
};
const names = Object.keys(identifiers);
const identifierMessage = `must have exactly one of ${names.join(', ')}`;
const countIdentifiers = (actor: object): number => names.filter((name) => Object.hasOwn(actor, name)).length;
const person = exactObject({}, { objectType: Type.Literal('Agent'), name: text, ...identifiers });
const Agent = refine(person, identifierMessage, (agent) => countIdentifiers(agent) === 1);
const Group = refine(
  exactObject(
    { objectType: Type.Literal('Group') },
    { name: text, ...identifiers, member: Type.Array(Agent) },
  ),
  `${identifierMessage}, or none of these and a member list`,
  (group) => countIdentifiers(group) === 1 || (countIdentifiers(group) === 0 && group.member !== undefined),
);
export const Actor = byObjectType('Group', Group, Agent);

const components = Type.Array(exactObject({ id: text }, { description: languages }));
const interactions = ['true-false', 'choice', 'fill-in', 'long-fill-in', 'matching', 'performance'] as const;
const definition = {
  ...{ name: languages, description: languages, type: Iri, moreInfo: Iri, extensions },
  interactionType: Type.Enum([...interactions, 'sequencing', 'likert', 'numeric', 'other']),
  correctResponsesPattern: Type.Array(text),
  ...{ choices: components, scale: components, source: components, target: components, steps: components },
};
const ofActivity = { objectType: Type.Literal('Activity'), definition: exactObject({}, definition) };
export const Activity = exactObject({ id: Iri }, ofActivity);
const StatementRef = exactObject({ objectType: Type.Literal('StatementRef'), id: Uuid }, {});

const score = refine(
  exactObject(
    {},
    { scaled: Type.Number({ minimum: -1, maximum: 1 }), raw: number, min: number, max: number },
  ),
  'must have min below max, and raw between min and max',
  ({ raw, min = -Infinity, max = Infinity }) => min < max && !(Number(raw) < min || Number(raw) > max),
);
const outcome = { score, success: flag, completion: flag, response: text, duration: Duration, extensions };
const activities = Type.Union([Activity, Type.Array(Activity)]);
const contexts = { parent: activities, grouping: activities, category: activities, other: activities };
const context = {
  ...{ registration: Uuid, instructor: Actor, team: Group, contextActivities: exactObject({}, contexts) },
  ...{ revision: text, platform: text, language: textWith('a language tag of RFC 5646', isLanguage) },
  ...{ statement: StatementRef, extensions },
};
/** Multipart bodies are not accepted. */
const attachment = exactObject(
  { usageType: Iri, display: languages, contentType: text, length: number, sha2: text, fileUrl: Iri },
  { description: languages },
);

const needed = { actor: Actor, verb: exactObject({ id: Iri }, { display: languages }) };
const more = {
  ...{ result: exactObject({}, outcome), context: exactObject({}, context), timestamp: Time },
  attachments: Type.Array(attachment),
};
const Named = byObjectType(
  'Agent',
  Agent,
  byObjectType('Group', Group, byObjectType('StatementRef', StatementRef, Activity)),
);
const SubStatement = exactObject(
  { objectType: Type.Literal('SubStatement'), ...needed, object: Named },
  more,
);
const version = textWith('1.0 or 1.0.x', (value) => /^1\.0(\.|$)/.test(value));
const all = exactObject(
  { ...needed, object: byObjectType('SubStatement', SubStatement, Named) },
  { ...more, id: Uuid, stored: Time, authority: Actor, version },
);

export const voidedVerb = 'http://adlnet.gov/expapi/verbs/voided';
const hasValidObject = ({ verb, object }: Static<typeof all>): boolean =>
  verb.id !== voidedVerb || object.objectType === 'StatementRef';
export const Statement = refine(
  all,
  'must have a StatementRef as object if the verb is voided',
  hasValidObject,
);
export type Statement = Static<typeof Statement>;
const check = Compile(Statement);

const ada = { account: { homePage: 'https://lms.example.org', name: 'ada' } };
const answered = { id: 'http://adlnet.gov/expapi/verbs/answered' };
const parent = [{ id: 'https://lms.example.org/skills/7' }];
const example = {
  ...{ id: '5b2c0d6e-6a38-4a53-9d70-6ee1e0d2b4a5', actor: ada, verb: answered },
  ...{ object: { id: 'https://lms.example.org/items/1' }, context: { contextActivities: { parent } } },
  result: { success: true, duration: 'PT45S' },
};
export const StatementBody = Type.Union([Statement, Type.Array(Statement)], { examples: [example] });

/** Longer statements get no error list: describing 50,000 fields takes a third of a second. */
const maxDescribedLength = 65_536;

/** @param path in the body. @throws ApiError INVALID_REQUEST */
export function parseStatement(value: unknown, path: string): Statement {
  if (check.Check(value)) return value;
  if (JSON.stringify(value).length <= maxDescribedLength)
    throw validationError('statement', ...describeErrors(check.Errors(value), path));
  throw validationError('statement', {
    path,
    message: 'is not a valid statement and is too large for details',
  });
}
