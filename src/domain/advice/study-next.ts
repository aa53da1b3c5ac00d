/** Advice on what to go on to: skills that were never answered, and what comes after a mastered one. */

import { studyModel } from '../base/params.js';
import { type Section, sections } from '../base/types.js';
import { isMastered } from '../tracing/states.js';
import { withName, withNames } from './advice-texts.js';
import { firstPracticeGain } from './gain.js';
import type { Judged } from './study-codes.js';
import { nameOf, type SkillAdvice, type SkillsContext } from './study-context.js';
import { bestUnseen } from './unseen-skills.js';

type IsSeen = (skillId: string) => boolean;

/** @param judged the learner's skills, by id */
export function adviseNext(context: SkillsContext, judged: readonly Judged[]): SkillAdvice[] {
  const isSeen = seenBy(context);
  const unexplored = sections.map((section) => explore(context, section, isSeen));
  return [...unexplored, ready(context, judged, isSeen)].filter((advice) => advice !== null);
}

/** Whether the learner has answered a skill; they are gathered when first asked for, which is seldom. */
function seenBy({ views }: SkillsContext): IsSeen {
  let seen: ReadonlySet<string> | null = null;
  return (skillId) => {
    seen ??= new Set(views.map((view) => view.skillId));
    return seen.has(skillId);
  };
}

/** To the most valuable skill without an answer, where less than half of the section is covered. */
function explore(context: SkillsContext, section: Section, isSeen: IsSeen): SkillAdvice | null {
  if (coverageOf(context, section) >= studyModel.coverage) return null;
  const unseen = bestUnseen(context.model, section, isSeen);
  if (unseen === null) return null;
  const { skillId, placement, model } = unseen;
  return {
    code: 'EXPLORE',
    skillId,
    gain: firstPracticeGain(placement, model, context.measures),
    text: (texts) => withName(nameOf(context, skillId), (skill) => texts.EXPLORE(skill, section)),
  };
}

/** Share of the section's known weight that the learner has answered. */
const coverageOf = ({ measures }: SkillsContext, section: Section): number =>
  measures[section].seenWeight / measures[section].knownWeight;

/** The mastered skill that was practised last of those with another to move on to; null where there is none. */
function ready(context: SkillsContext, judged: readonly Judged[], isSeen: IsSeen): SkillAdvice | null {
  const mastered = [...sections, null].flatMap((section) => lastMastered(judged, section) ?? []);
  for (const { view, gain } of mastered.sort(byLastAttempt)) {
    const next = nextSkill(context, judged, view.placement.section, isSeen);
    if (next === null) continue;
    const { skillId } = view;
    return {
      code: 'READY',
      skillId,
      gain,
      text: (texts) => withNames(nameOf(context, skillId), nameOf(context, next), texts.READY),
    };
  }
  return null;
}

/** Of those practised at the same time the first by id. */
function lastMastered(judged: readonly Judged[], section: Section | null): Judged | null {
  let last: Judged | null = null;
  for (const one of judged) {
    if (one.code !== 'READY' || one.view.placement.section !== section) continue;
    if (last === null || byLastAttempt(one, last) < 0) last = one;
  }
  return last;
}

/** The latest first. */
const byLastAttempt = (a: Judged, b: Judged): number =>
  b.view.state.lastAttemptAt - a.view.state.lastAttemptAt;

/** The skill of the section with the highest gain that is not mastered, answered or not; null where there is none. */
function nextSkill(
  { model, measures }: SkillsContext,
  judged: readonly Judged[],
  section: Section | null,
  isSeen: IsSeen,
): string | null {
  const unseen = bestUnseen(model, section, isSeen);
  let next = unseen && {
    skillId: unseen.skillId,
    gain: firstPracticeGain(unseen.placement, unseen.model, measures),
  };
  for (const { view, gain } of judged) {
    if (view.placement.section !== section || isMastered(view.state, view.mastery)) continue;
    if (next === null || gain > next.gain) next = { skillId: view.skillId, gain };
  }
  return next?.skillId ?? null;
}
