/** What to go on to: skills without answers, and what comes after a mastered one. */

import { onceFor } from '../base/once-for.js';
import { studyModel } from '../base/params.js';
import { type Section, sections } from '../base/types.js';
import type { Placement } from '../catalogue/catalogue.js';
import { type SkillModel, skillModelOf, type TenantModel } from '../catalogue/tenant-model.js';
import { trustOf } from '../score/section-measure.js';
import { isMastered } from '../tracing/states.js';
import { firstHour, firstPracticeGain } from './gain.js';
import { type Judged, nameOf, type SkillAdvice, type SkillsContext } from './skill-advice.js';
import { withNames } from './texts.js';

/** @param judged the learner's skills, by id */
export function adviseNext(context: SkillsContext, judged: readonly Judged[]): SkillAdvice[] {
  const bestUnseen = unseenBy(context);
  const unexplored = sections.map((section) => explore(context, section, bestUnseen));
  return [...unexplored, ready(context, judged, bestUnseen)].filter((advice) => advice !== null);
}

/** A skill that the tenant has set and the learner has not answered. */
interface UnseenSkill {
  readonly skillId: string;
  readonly placement: Placement;
  readonly model: SkillModel;
  /** In proportion to the gain of a first hour. */
  readonly value: number;
}

/** The most valuable skill of the section without an answer of the learner; null where there is none. */
type BestUnseen = (section: Section | null) => UnseenSkill | null;

function unseenBy({ views, model }: SkillsContext): BestUnseen {
  let seen: ReadonlySet<string> | null = null; // seldom asked for
  const isUnseen = ({ skillId }: UnseenSkill): boolean => {
    seen ??= new Set(views.map((view) => view.skillId));
    return !seen.has(skillId);
  };
  return (section) => rankingOf(model)[section ?? 'none'].find(isUnseen) ?? null;
}

/** The catalogue's skills by section, the most valuable first: ranked once, for a catalogue may be large. */
const rankingOf = onceFor((model: TenantModel) => {
  const ranking: Record<Section | 'none', UnseenSkill[]> = { math: [], rw: [], none: [] };
  for (const [skillId, placement] of model.catalogue.entries) {
    const skill = skillModelOf(model, skillId);
    const value = placement.weight * trustOf({ model: skill }) * firstHour(skill.parameters);
    ranking[placement.section ?? 'none'].push({ skillId, placement, model: skill, value });
  }
  for (const skills of Object.values(ranking)) {
    skills.sort((a, b) => b.value - a.value || compareIds(a.skillId, b.skillId));
  }
  return ranking;
});

/** An order of ids that is the same everywhere. */
export const compareIds = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** To the most valuable skill without an answer, where less than half of the section is covered. */
function explore(context: SkillsContext, section: Section, bestUnseen: BestUnseen): SkillAdvice | null {
  const { seenWeight, knownWeight } = context.measures[section];
  const unseen = seenWeight / knownWeight >= studyModel.coverage ? null : bestUnseen(section);
  if (unseen === null) return null;
  const { skillId, placement, model } = unseen;
  return {
    code: 'EXPLORE',
    skillId,
    gain: firstPracticeGain(placement, model, context.measures),
    text: (texts) => withNames((skill) => texts.EXPLORE(skill, section), nameOf(context, skillId)),
  };
}

/** The mastered skill that was practised last of those with another to move on to; null where there is none. */
function ready(
  context: SkillsContext,
  judged: readonly Judged[],
  bestUnseen: BestUnseen,
): SkillAdvice | null {
  for (const { view, gain } of lastMastered(judged)) {
    const next = nextSkill(context, judged, view.placement.section, bestUnseen);
    if (next === null) continue;
    const { skillId } = view;
    return {
      code: 'READY',
      skillId,
      gain,
      text: (texts) => withNames(texts.READY, nameOf(context, skillId), nameOf(context, next)),
    };
  }
  return null;
}

/** The mastered skill of each section that was practised last, of several the first by id; the latest first. */
function lastMastered(judged: readonly Judged[]): Judged[] {
  const mastered = judged.filter(({ code }) => code === 'READY').sort(byLastAttempt);
  const ofSection = (section: Section | null) =>
    mastered.find(({ view }) => view.placement.section === section) ?? [];
  return [...sections, null].flatMap(ofSection).sort(byLastAttempt);
}

const byLastAttempt = (a: Judged, b: Judged): number =>
  b.view.state.lastAttemptAt - a.view.state.lastAttemptAt;

/** The skill of the section with the highest gain that is not mastered, answered or not; null where there is none. */
function nextSkill(
  { measures }: SkillsContext,
  judged: readonly Judged[],
  section: Section | null,
  bestUnseen: BestUnseen,
): string | null {
  const unseen = bestUnseen(section);
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
