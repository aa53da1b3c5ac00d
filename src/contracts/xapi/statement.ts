/**
 * xAPI 1.0.3 (Data, 2.2 to 2.4). Rejects everything that the specification rejects, even in unused fields.
 */
import Type, { type Static, type TProperties, type TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { IsIri, IsUuid } from 'typebox/format';
import { misfit, problemsOf } from '../checked.js';
import { parseTime } from '../events.js';
import { secondsOf } from './duration.js';

const exact = <Needed extends TProperties, More extends TProperties>(needed: Needed, more: More) =>
  Type.Object({ ...needed, ...Type.Partial(Type.Object(more)).properties }, { additionalProperties: false });
const rule = <Of extends TSchema>(of: Of, message: string, holds: (value: Static<Of>) => boolean) =>
  Type.Refine(of, holds, () => message);
const word = (wanted: string, fits: (value: string) => boolean) =>
  rule(Type.String(), `must be ${wanted}`, fits);
const mapBy = <Of extends TSchema>(wanted: string, fits: (key: string) => boolean, of: Of) =>
  rule(Type.Record(Type.String(), of), `must have ${wanted} as keys`, (map) => Object.keys(map).every(fits));
const ofKind = <Kind extends string, Then extends TSchema, Else extends TSchema>(
  kind: Kind,
  then: Then,
  otherwise: Else,
) => Type.Dependent(Type.Object({ objectType: Type.Literal(kind) }), then, otherwise);

const isIri = (value: string): boolean => IsIri(value) && !/[\p{Cc}\p{Cs}]/u.test(value);
const isLanguage = (value: string): boolean => /^[a-z]{1,8}(-[a-z\d]{1,8})*$/i.test(value);
export const Iri = word('an IRI with a scheme', isIri);
export const Uuid = word('a UUID', IsUuid);
const Time = word('an RFC 3339 time such as 2026-05-31T12:00:00Z', (value) => parseTime(value) !== null);
const Duration = word('an ISO 8601 duration such as PT30S', (value) => secondsOf(value) !== null);
const [text, flag, number] = [Type.String(), Type.Boolean(), Type.Number()];
const languages = mapBy('language tags of RFC 5646', isLanguage, text);
export const byIri = <Of extends TSchema>(of: Of) => mapBy('IRIs with a scheme', isIri, of);
const extensions = byIri(Type.Unknown());

const identifiers = {
  mbox: word('mailto: and an address', (value) => /^mailto:[^\s@\p{Cs}]+@[^\s@\p{Cs}]+$/u.test(value)),
  mbox_sha1sum: word('a SHA-1 in hexadecimal', (value) => /^[\da-f]{40}$/i.test(value)),
  openid: Iri,
  account: exact({ homePage: Iri, name: word('well-formed Unicode', (value) => value.isWellFormed()) }, {}),
};
const names = Object.keys(identifiers);
const oneOf = `must have exactly one of ${names.join(', ')}`;
const identities = (actor: object): number => names.filter((name) => Object.hasOwn(actor, name)).length;
const person = exact({}, { objectType: Type.Literal('Agent'), name: text, ...identifiers });
const Agent = rule(person, oneOf, (agent) => identities(agent) === 1);
const Group = rule(
  exact({ objectType: Type.Literal('Group') }, { name: text, ...identifiers, member: Type.Array(Agent) }),
  `${oneOf}, or members and none of these`,
  (group) => identities(group) === 1 || (identities(group) === 0 && group.member !== undefined),
);
export const Actor = ofKind('Group', Group, Agent);

const components = Type.Array(exact({ id: text }, { description: languages }));
const interactions = ['true-false', 'choice', 'fill-in', 'long-fill-in', 'matching', 'performance'] as const;
const definition = {
  ...{ name: languages, description: languages, type: Iri, moreInfo: Iri, extensions },
  interactionType: Type.Enum([...interactions, 'sequencing', 'likert', 'numeric', 'other']),
  correctResponsesPattern: Type.Array(text),
  ...{ choices: components, scale: components, source: components, target: components, steps: components },
};
const ofActivity = { objectType: Type.Literal('Activity'), definition: exact({}, definition) };
export const Activity = exact({ id: Iri }, ofActivity);
const StatementRef = exact({ objectType: Type.Literal('StatementRef'), id: Uuid }, {});

const score = rule(
  exact({}, { scaled: Type.Number({ minimum: -1, maximum: 1 }), raw: number, min: number, max: number }),
  'must have min below max, and raw between them',
  ({ raw, min = -Infinity, max = Infinity }) => min < max && !(Number(raw) < min || Number(raw) > max),
);
const outcome = { score, success: flag, completion: flag, response: text, duration: Duration, extensions };
const activities = Type.Union([Activity, Type.Array(Activity)]);
const contexts = { parent: activities, grouping: activities, category: activities, other: activities };
const context = {
  ...{ registration: Uuid, instructor: Actor, team: Group, contextActivities: exact({}, contexts) },
  ...{ revision: text, platform: text, language: word('a language tag of RFC 5646', isLanguage) },
  ...{ statement: StatementRef, extensions },
};
/** Multipart bodies are not accepted. */
const attachment = exact(
  { usageType: Iri, display: languages, contentType: text, length: number, sha2: text, fileUrl: Iri },
  { description: languages },
);

const needed = { actor: Actor, verb: exact({ id: Iri }, { display: languages }) };
const more = {
  ...{ result: exact({}, outcome), context: exact({}, context), timestamp: Time },
  attachments: Type.Array(attachment),
};
const Named = ofKind('Agent', Agent, ofKind('Group', Group, ofKind('StatementRef', StatementRef, Activity)));
const SubStatement = exact({ objectType: Type.Literal('SubStatement'), ...needed, object: Named }, more);
const version = word('1.0 or 1.0.x', (value) => /^1\.0(\.|$)/.test(value));
const all = exact(
  { ...needed, object: ofKind('SubStatement', SubStatement, Named) },
  { ...more, id: Uuid, stored: Time, authority: Actor, version },
);

export const voided = 'http://adlnet.gov/expapi/verbs/voided';
const voidsStatement = ({ verb, object }: Static<typeof all>): boolean =>
  verb.id !== voided || object.objectType === 'StatementRef';
export const Statement = rule(
  all,
  'must have a StatementRef as object where the verb is voided',
  voidsStatement,
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
const mostDescribed = 65_536;

/** @param path in the body. @throws ApiError INVALID_REQUEST */
export function readStatement(value: unknown, path: string): Statement {
  if (check.Check(value)) return value;
  if (JSON.stringify(value).length <= mostDescribed)
    throw misfit('statement', ...problemsOf(check.Errors(value), path));
  throw misfit('statement', { path, message: 'does not fit, and is too large to be told where' });
}
