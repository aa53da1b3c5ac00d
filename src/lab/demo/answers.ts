/**
 * Deliberately not a BKT model: difficulty and ability matter, learners forget in idle weeks, and some skills
 * behave oddly.
 */
import {
  type Answer,
  clamp,
  dayMs,
  logit,
  mapNonEmpty,
  type NonEmpty,
  sections,
  sigmoid,
} from '../../domain/base/common.js';
import { indices } from '../../lists.js';
import { type Enrolment, gradeOf } from './enrolment.js';
import type { DemoItem, DemoLearner, DemoSkill, Draws } from './school.js';

export interface DemoAnswer extends Answer {
  readonly userId: string;
  readonly skillIds: NonEmpty<string>;
  readonly itemId: string | null;
  readonly eventId: string | null;
  /** Arrival at the platform, Unix milliseconds. */
  readonly sentAt: number;
}

const hourMs = 3_600_000;

/** Every ninth week, counted from the epoch, ends with a school test. */
export const isTestWeek = (monday: number): boolean => Math.floor(monday / (7 * dayMs) + 0.5) % 9 === 4;

/** Share of the usual practice in holidays. */
function findHolidayPractice(ms: number): number | undefined {
  const day = new Date(ms).toISOString().slice(5, 10);
  if (day >= '12-21' || day <= '01-04' || (day >= '10-19' && day <= '11-01')) return 0.15;
  if (day >= '07-01' && day <= '08-31') return 0.3;
  return day >= '04-03' && day <= '04-09' ? 0.25 : undefined;
}

/** Weeks belong to the holidays of their Thursday. */
const computeWeekFactor = (monday: number): number =>
  findHolidayPractice(monday + 3 * dayMs) ?? (isTestWeek(monday) ? 1.4 : 1);

const hasHoliday = (from: number, to: number): boolean =>
  indices(Math.floor((to - from) / dayMs)).some((day) => findHolidayPractice(from + day * dayMs));

export interface Student extends DemoLearner, Enrolment {
  /** End of the last day of the school, Unix milliseconds. */
  readonly schoolEnds: number;
}

/** One class does not understand these skills until its teacher explains them again, and gets homework on them. */
const lessons = { className: '10-A', skillIds: ['absolute-value', 'exponents-and-radicals'] };
/** One grade forgets these skills in holidays. */
const holidayLoss = { grade: '9', skillIds: ['polynomials', 'text-structure'] };

const isInLastDays = ({ schoolEnds }: Student, days: number, at: number): boolean =>
  at >= schoolEnds - days * dayMs;

/** One class practises less and guesses more. */
const isDeclining = (student: Student, at: number): boolean =>
  student.className === '11-A' && isInLastDays(student, 28, at);

/** The classes of one teacher practise less. */
const computePractice = (student: Student, monday: number): number =>
  isDeclining(student, monday) ? 0.7 : /^(9|12)-C$/.test(student.className) ? 0.6 : 1;

export function simulateAnswers(learner: Student, skills: readonly DemoSkill[], draws: Draws): DemoAnswer[] {
  const answerSession = createStudent(learner, skills, draws);
  const all: DemoAnswer[] = [];
  for (let monday = learner.from; monday < learner.to; monday += 7 * dayMs)
    for (const { at, answers } of drawSessions(learner, monday, draws)) {
      const isFree = at >= (all.at(-1)?.occurredAt ?? 0) + hourMs && at < learner.to;
      const late = learner.device === 'offline' && draws.chance(0.25) ? draws.whole(1, 4) * dayMs : 0;
      if (isFree) all.push(...answerSession(at, answers, late));
    }
  return all.slice(0, learner.atMostAnswers);
}

function drawSessions(learner: Student, monday: number, draws: Draws) {
  const factor = computeWeekFactor(monday) * computePractice(learner, monday);
  const isActive = monday === learner.from || draws.chance(learner.weeks * Math.min(1, 2 * factor));
  const count = isActive ? Math.max(1, Math.round(learner.sessions * factor * draws.between(0.5, 1.5))) : 0;
  // Sessions end before midnight, and before the forecasts of Sunday evening.
  const createSession = (day: number, answers: number) => ({
    at: monday + day * dayMs + Math.round(draws.between(8, 18) * hourMs),
    answers: Math.max(3, Math.round(answers)),
  });
  const usual = indices(count).map(() => createSession(draws.whole(0, 6), draws.normal(learner.answers, 3)));
  const cram =
    learner.crams && isTestWeek(monday) ? [3, 4].map((day) => createSession(day, draws.whole(30, 60))) : [];
  return [...usual, ...cram].sort((a, b) => a.at - b.at);
}

/** Draws the current skill of a section, or an earlier one. */
function createSkillPath({ ability }: DemoLearner, skills: readonly DemoSkill[], draws: Draws) {
  const sectionPaths = sections.map((section) => {
    const own = skills.filter((skill) => skill.section === section);
    const start = Math.round(clamp(draws.normal(3 + 3 * ability, 2.5), 0, own.length - 6));
    return { own, start, at: start, left: draws.whole(8, 14) };
  });
  return (section: number): DemoSkill => {
    const place = sectionPaths[section] as (typeof sectionPaths)[number];
    const last = place.own.length - 1;
    const back = draws.chance(0.68) ? 0 : draws.whole(1, draws.chance(0.7) ? 4 : last);
    const skill = place.own[Math.max(place.start, place.at - back)] as DemoSkill;
    if (back > 0 || --place.left > 0) return skill;
    place.at = place.at < last ? place.at + 1 : place.start;
    place.left = draws.whole(8, 14);
    return skill;
  };
}

/** Knowledge of both halves of the items. The halves differ only for a `double` skill. */
function drawKnowledge(
  { ability, stuck }: DemoLearner,
  { easiness, oddity }: DemoSkill,
  lastAt: number,
  draws: Draws,
) {
  const [first, second] = indices(2).map(() => draws.chance(sigmoid(easiness + ability)));
  const knows = [first, oddity === 'double' ? second : first];
  return { knows, stuck: oddity === 'unteachable' || (stuck && draws.chance(0.6)), answers: 0, lastAt };
}

/**
 * Probability of a right answer without rapid guesses.
 * @param answers so far on the skill
 */
function computeChance(
  { ability }: DemoLearner,
  skill: DemoSkill,
  item: DemoItem,
  knows: boolean,
  answers: number,
) {
  if (item.misleading) return knows ? 0.3 : 0.4;
  const own = 0.4 * ability - 0.9 * item.difficulty;
  if (skill.oddity === 'unteachable') return sigmoid(0.1 + own);
  const dip = skill.oddity === 'dip' && answers >= 4 && answers < 14 ? 1.8 : 0;
  return sigmoid((knows ? skill.known : skill.guess) + own - dip);
}

/** @param mean of ln(seconds) */
const drawSeconds = (mean: number, draws: Draws): number =>
  draws.chance(0.002)
    ? draws.whole(3700, 9000)
    : Math.round(clamp(Math.exp(draws.normal(mean, 0.45)), 5, 900));

/** The result takes a start, a number of answers, and a delay of arrival in milliseconds. */
function createStudent(learner: Student, skills: readonly DemoSkill[], draws: Draws) {
  const knowledge = new Map<DemoSkill, ReturnType<typeof drawKnowledge>>();
  const nextSkill = createSkillPath(learner, skills, draws);
  const mathShare = draws.between(0.35, 0.7);
  const isOld = learner.device === 'old';
  const learning = 0.15 * learner.learning * (learner.attributes.hints === 'on' ? 2 : 1);
  const losesSkills = gradeOf(learner.className) === holidayLoss.grade;
  const isTaught = learner.className === lessons.className;
  const lessonSkills = skills.filter(({ id }) => isTaught && lessons.skillIds.includes(id));
  let number = 0;

  function recall(skill: DemoSkill, item: DemoItem, at: number) {
    const half = skill.oddity === 'double' ? Number(item.id.slice(-2)) % 2 : 0;
    const state = knowledge.get(skill) ?? drawKnowledge(learner, skill, at, draws);
    knowledge.set(skill, state);
    const idleDays = Math.max(0, (at - state.lastAt) / dayMs - 2);
    const isLost = losesSkills && holidayLoss.skillIds.includes(skill.id) && hasHoliday(state.lastAt, at);
    if (draws.chance(isLost ? 0.9 : 1 - Math.exp(-learner.forgets * idleDays))) state.knows.fill(false);
    if (lessonSkills.includes(skill)) state.knows.fill(isInLastDays(learner, 21, at) && draws.chance(0.95));
    return { skill, half, state, knows: state.knows[half] === true };
  }

  function practise({ half, state }: ReturnType<typeof recall>, isRapid: boolean, at: number): void {
    if (!isRapid && !state.stuck && draws.chance(learning)) state.knows[half] = true;
    state.answers += 1;
    state.lastAt = at;
  }

  function answer(skill: DemoSkill, occurredAt: number, late: number): DemoAnswer {
    const item = draws.pick(skill.items);
    const second = skills.find(({ id }) => id === item.second);
    const asked: NonEmpty<DemoSkill> = second === undefined ? [skill] : [skill, second];
    const recalled = mapNonEmpty(asked, (one) => recall(one, item, occurredAt));
    const isRapid = draws.chance(learner.rapid + (isDeclining(learner, occurredAt) ? 0.3 : 0));
    // The weakest skill decides.
    const chances = recalled.map(({ skill, state, knows }) =>
      computeChance(learner, skill, item, knows, state.answers),
    );
    const p = isRapid ? 0.25 : Math.min(...chances);
    const isCorrect = draws.chance(p);
    const knowsAll = recalled.every(({ knows }) => knows);
    const slower = (isCorrect ? 0 : 0.1) - (knowsAll ? 0.2 : 0) - 0.1 * learner.ability;
    const logTime = skill.logTime + (second === undefined ? 0 : 0.3);
    const seconds = isRapid ? draws.whole(1, 2) : drawSeconds(logTime + slower, draws);
    for (const one of recalled) practise(one, isRapid, occurredAt);
    const isAsked = learner.sure !== null && draws.chance(0.85);
    const sure = draws.normal(2.9 + 0.5 * logit(p) + (learner.sure ?? 0), 0.9);
    // Object spreads took one second for all answers.
    return {
      userId: learner.userId,
      skillIds: mapNonEmpty(asked, ({ id }) => id),
      isCorrect,
      occurredAt,
      sentAt: occurredAt + late,
      itemId: isOld && draws.chance(0.05) ? null : item.id,
      eventId: isOld ? null : `${learner.userId}-${++number}`,
      questionDifficulty: item.rated,
      timeSpentSeconds: draws.chance(0.02) ? null : seconds,
      confidenceScore: isAsked ? Math.round(clamp(sure, 1, 5)) : null,
    };
  }

  return (from: number, count: number, late: number): DemoAnswer[] => {
    const main = draws.chance(mathShare) ? 0 : 1;
    let at = from;
    return indices(count).flatMap(() => {
      const isHomework = isTaught && isInLastDays(learner, 56, at) && draws.chance(0.25);
      const skill = isHomework ? draws.pick(lessonSkills) : nextSkill(draws.chance(0.9) ? main : 1 - main);
      const made = answer(skill, at, late);
      at += 1000 * (Math.min(900, made.timeSpentSeconds ?? 60) + draws.whole(3, 20));
      return isOld && draws.chance(0.02) ? [made, made] : [made];
    });
  };
}
