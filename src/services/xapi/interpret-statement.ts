import { createHash } from 'node:crypto';
import { type LearningEvent, maxQuestionSkills } from '../../contracts/answers/events.js';
import { findIdProblem } from '../../contracts/schema/ids.js';
import { parseDurationSeconds } from '../../contracts/xapi/duration.js';
import type { XapiMapping } from '../../contracts/xapi/mapping.js';
import { type Statement, voidedVerb } from '../../contracts/xapi/statement.js';
import { distinct } from '../../lists.js';

/** `other`: not an answer of one learner. `unmapped`: an answer without skills in the mapping, or with too many. */
export type StatementMeaning =
  | { readonly kind: 'answer'; readonly event: LearningEvent }
  | { readonly kind: 'voiding'; readonly statementId: string }
  | { readonly kind: 'other' | 'unmapped' };

type Actor = Statement['actor'];
type Activity = Extract<Statement['object'], { objectType?: 'Activity' }>;

const answerVerbs = ['answered', 'passed', 'failed', 'completed'].map(
  (verb) => `http://adlnet.gov/expapi/verbs/${verb}`,
);

export function interpretStatement(statement: Statement, id: string, mapping: XapiMapping): StatementMeaning {
  const { verb, object, actor, result, context, timestamp = null } = statement;
  if (object.objectType === 'StatementRef' && verb.id === voidedVerb)
    return { kind: 'voiding', statementId: object.id.toLowerCase() };
  const isCorrect = parseSuccess(result, mapping.success_threshold);
  const isActivity = object.objectType === undefined || object.objectType === 'Activity';
  if (!isActivity || !answerVerbs.includes(verb.id) || actor.objectType === 'Group' || isCorrect === null)
    return { kind: 'other' };
  const skillIds = resolveSkillIds(object, context, mapping);
  if (skillIds.length === 0 || skillIds.length > maxQuestionSkills) return { kind: 'unmapped' };
  const who = {
    user_id: resolveUserId(actor, mapping.home_page),
    skill_ids: skillIds,
    item_id: shortenId(object.id),
  };
  const answer = { is_correct: isCorrect, time_spent_seconds: parseTimeSpent(result?.duration) };
  return { kind: 'answer', event: { ...who, ...answer, event_id: id, occurred_at: timestamp } };
}

function parseSuccess(result: Statement['result'], threshold: number | null): boolean | null {
  if (result?.success !== undefined) return result.success;
  const scaled = result?.score?.scaled;
  return threshold === null || scaled === undefined ? null : scaled >= threshold;
}

/** A duration above a day is not the time of one question. */
function parseTimeSpent(duration = ''): number | null {
  const seconds = Math.round(parseDurationSeconds(duration) ?? Infinity);
  return seconds <= 86_400 ? seconds : null;
}

const hashId = (text: string): string => `x-${createHash('sha256').update(text).digest('base64url')}`;
const shortenId = (iri: string): string => (findIdProblem(iri) === null ? iri : hashId(iri));

/** An mbox and its SHA-1 are the same learner: platforms send either. */
function resolveUserId({ account, openid, mbox, mbox_sha1sum = '' }: Actor, homePage: string | null): string {
  if (account?.homePage === homePage && findIdProblem(account.name) === null) return account.name;
  if (account !== undefined) return hashId(`account\n${account.homePage}\n${account.name}`);
  if (openid !== undefined) return hashId(`openid\n${openid}`);
  const sha1 =
    mbox === undefined ? mbox_sha1sum.toLowerCase() : createHash('sha1').update(mbox).digest('hex');
  return hashId(`mbox_sha1sum\n${sha1}`);
}

/** Empty if an entry of the extension is not a text. */
function resolveSkillIds(
  activity: Activity,
  context: Statement['context'],
  { skill_from: from, skills }: XapiMapping,
): string[] {
  const source =
    typeof from === 'string'
      ? [context?.contextActivities?.[from] ?? []].flat().map(({ id }) => id)
      : (context?.extensions?.[from.extension] ?? activity.definition?.extensions?.[from.extension] ?? []);
  const named: unknown[] = [source].flat();
  if (!named.every(isSkillName)) return [];
  return distinct(
    named.flatMap((name) => (Object.hasOwn(skills, name) ? (skills[name] ?? []) : shortenId(name))),
  );
}

const isSkillName = (name: unknown): name is string =>
  typeof name === 'string' && name !== '' && name.isWellFormed();
